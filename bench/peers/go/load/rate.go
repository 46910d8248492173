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

const (
	warmUps     = 5
	batchPrefix = "batch"
)

// slice is one line of the output: what one chaincode did in one short stretch of time.
type slice struct {
	Chaincode string  `json:"chaincode"`
	Round     int     `json:"round"`
	Done      int     `json:"done"`
	Failed    int     `json:"failed"`
	Seconds   float64 `json:"seconds"`
	MedianMS  float64 `json:"median_ms"`
}

type operation func(contract *client.Contract, unique string) error

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
	work, err := prepare(contracts, *kind, *size, *keys)
	if err != nil {
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

// prepare stores what is to be read, runs each chaincode warm, and refuses to compare ones that answer differently.
func prepare(contracts map[string]*client.Contract, kind string, size, keys int) (operation, error) {
	value, count, stored := strings.Repeat("x", size), strconv.Itoa(keys), fmt.Sprintf("stored-%d", size)
	batch := fmt.Sprintf("%s-%d-", batchPrefix, size)
	var work operation
	var answer func(contract *client.Contract) ([]byte, error)
	for name, contract := range contracts {
		var err error
		switch kind {
		case "evaluate":
			_, err = contract.SubmitTransaction("put", stored, value)
		case "reads":
			_, err = contract.SubmitTransaction("put_many", batch, count, strconv.Itoa(size))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, explained(err))
		}
	}
	switch kind {
	case "submit":
		work = func(contract *client.Contract, unique string) error {
			_, err := contract.SubmitTransaction("put", unique, value)
			return err
		}
	case "evaluate":
		answer = func(contract *client.Contract) ([]byte, error) {
			return contract.EvaluateTransaction("get", stored)
		}
	case "writes":
		// Evaluated: the peer simulates the transaction; ordering it would hide the chaincode behind the block's time.
		answer = func(contract *client.Contract) ([]byte, error) {
			return contract.EvaluateTransaction("put_many", batch, count, strconv.Itoa(size))
		}
	case "reads":
		answer = func(contract *client.Contract) ([]byte, error) {
			return contract.EvaluateTransaction("get_many", batch, count)
		}
	default:
		return nil, fmt.Errorf("unknown operation %q", kind)
	}
	if answer == nil {
		return work, warm(contracts, work)
	}
	expected := ""
	for name, contract := range contracts {
		found, err := answer(contract)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, explained(err))
		}
		if expected != "" && string(found) != expected {
			return nil, fmt.Errorf("%s answers otherwise than the others", name)
		}
		expected = string(found)
	}
	work = func(contract *client.Contract, _ string) error {
		found, err := answer(contract)
		if err == nil && string(found) != expected {
			err = fmt.Errorf("another answer of %d bytes", len(found))
		}
		return err
	}
	return work, warm(contracts, work)
}

func warm(contracts map[string]*client.Contract, work operation) error {
	for name, contract := range contracts {
		for number := range warmUps {
			if err := work(contract, unique(number, 0)); err != nil {
				return fmt.Errorf("%s: %w", name, explained(err))
			}
		}
	}
	return nil
}

// measure keeps so many callers busy until the time is over, then waits for their last calls.
func measure(contract *client.Contract, work operation, clients int, length time.Duration) slice {
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
				err := work(contract, unique(caller, number))
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
