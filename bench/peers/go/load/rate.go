package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hyperledger/fabric-gateway/pkg/client"
)

const warmUps = 5

// slice is one line of the output: what one chaincode did in one short stretch of time.
type slice struct {
	Chaincode string  `json:"chaincode"`
	Round     int     `json:"round"`
	Done      int     `json:"done"`
	Failed    int     `json:"failed"`
	Seconds   float64 `json:"seconds"`
	MedianMS  float64 `json:"median_ms"`
}

// rate lets the chaincodes take turns in short slices, so that whatever else the machine does hits all alike.
func rate(net *network, arguments []string) error {
	flags := flag.NewFlagSet("rate", flag.ExitOnError)
	names := flags.String("chaincodes", "", "names, with commas between")
	kind := flags.String("operation", "", "submit, evaluate, writes or reads")
	size := flags.Int("size", 1000, "bytes of a value")
	keys := flags.Int("keys", 1000, "keys of one transaction, for writes and reads")
	clients := flags.Int("clients", 1, "concurrent callers")
	seconds := flags.Float64("seconds", 2, "length of a slice")
	rounds := flags.Int("rounds", 3, "slices of each chaincode")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	contracts := map[string]*client.Contract{}
	order := strings.Split(*names, ",")
	for _, name := range order {
		contract, err := net.contract("org1", "admin", name)
		if err != nil {
			return err
		}
		contracts[name] = contract
	}
	work, err := workOf(*kind, *size, *keys)
	if err != nil {
		return err
	}
	if err := work.prepare(order, contracts); err != nil {
		return err
	}
	output := json.NewEncoder(os.Stdout)
	for round := range *rounds {
		for _, name := range order {
			made := measure(contracts[name], work, *clients, time.Duration(*seconds*float64(time.Second)))
			made.Chaincode, made.Round = name, round
			if err := output.Encode(made); err != nil {
				return err
			}
		}
		order = append(order[1:], order[0])
	}
	return nil
}

// work is what one call does; what every chaincode must answer is found out before anything is measured.
type work struct {
	submit    bool
	stored    []string
	arguments func(unique string) []string
	answer    string
}

func workOf(kind string, size, keys int) (*work, error) {
	value, count, bytes := strings.Repeat("x", size), strconv.Itoa(keys), strconv.Itoa(size)
	key, prefix := "stored-"+bytes, "batch-"+bytes+"-"
	always := func(arguments ...string) func(string) []string {
		return func(string) []string { return arguments }
	}
	switch kind {
	case "submit":
		return &work{submit: true, arguments: func(unique string) []string { return []string{"put", unique, value} }}, nil
	case "evaluate":
		return &work{stored: []string{"put", key, value}, arguments: always("get", key)}, nil
	case "writes":
		// Evaluated: the peer simulates the transaction; ordering it would hide the chaincode behind the block's time.
		return &work{arguments: always("put_many", prefix, count, bytes)}, nil
	case "reads":
		return &work{stored: []string{"put_many", prefix, count, bytes}, arguments: always("get_many", prefix, count)}, nil
	}
	return nil, fmt.Errorf("unknown operation %q", kind)
}

// prepare stores what is to be read, runs each chaincode warm, and refuses to compare ones that answer differently.
func (work *work) prepare(order []string, contracts map[string]*client.Contract) error {
	for place, name := range order {
		contract := contracts[name]
		if work.stored != nil {
			if _, err := contract.SubmitTransaction(work.stored[0], work.stored[1:]...); err != nil {
				return fmt.Errorf("%s: %w", name, explained(err))
			}
		}
		for number := range warmUps {
			answer, err := work.call(contract, unique(0, number))
			if err != nil {
				return fmt.Errorf("%s: %w", name, explained(err))
			}
			if place == 0 && number == 0 {
				work.answer = answer
			}
			if answer != work.answer {
				return fmt.Errorf("%s answers otherwise than %s", name, order[0])
			}
		}
	}
	return nil
}

func (work *work) call(contract *client.Contract, unique string) (string, error) {
	run := contract.EvaluateTransaction
	if work.submit {
		run = contract.SubmitTransaction
	}
	arguments := work.arguments(unique)
	answer, err := run(arguments[0], arguments[1:]...)
	return string(answer), err
}

// check runs one call that has to succeed with the known answer.
func (work *work) check(contract *client.Contract, unique string) error {
	answer, err := work.call(contract, unique)
	if err == nil && answer != work.answer {
		err = fmt.Errorf("another answer, of %d bytes", len(answer))
	}
	return err
}

// measure keeps so many callers busy until the time is over, then waits for their last calls.
func measure(contract *client.Contract, work *work, clients int, length time.Duration) slice {
	var lock sync.Mutex
	var callers sync.WaitGroup
	var made slice
	var milliseconds []float64
	began := time.Now()
	for caller := range clients {
		callers.Add(1)
		go func() {
			defer callers.Done()
			for number := 0; time.Since(began) < length; number++ {
				asked := time.Now()
				err := work.check(contract, unique(caller, number))
				took := float64(time.Since(asked).Microseconds()) / 1000
				lock.Lock()
				if err == nil {
					made.Done++
					milliseconds = append(milliseconds, took)
				} else {
					if made.Failed == 0 {
						fmt.Fprintf(os.Stderr, "load: %v\n", explained(err))
					}
					made.Failed++
				}
				lock.Unlock()
			}
		}()
	}
	callers.Wait()
	made.Seconds = time.Since(began).Seconds()
	if len(milliseconds) > 0 {
		slices.Sort(milliseconds)
		made.MedianMS = milliseconds[len(milliseconds)/2]
	}
	return made
}

// unique makes a key nobody else writes, so that no two transactions conflict.
func unique(caller, number int) string {
	return fmt.Sprintf("%d-%d-%d", caller, number, time.Now().UnixNano())
}
