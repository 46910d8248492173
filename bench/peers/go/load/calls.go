package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hyperledger/fabric-gateway/pkg/client"
	"github.com/hyperledger/fabric-protos-go-apiv2/gateway"
	"google.golang.org/grpc/status"
)

// call is one transaction by one identity; bytes are base64 in JSON.
type call struct {
	Org       string            `json:"org"`
	User      string            `json:"user"`
	Chaincode string            `json:"chaincode"`
	Arguments []string          `json:"arguments"`
	Transient map[string][]byte `json:"transient"`
	Evaluate  bool              `json:"evaluate"`
}

type outcome struct {
	Payload   []byte  `json:"payload"`
	EndorseMS float64 `json:"endorse_ms"`
	Block     uint64  `json:"block"`
	Code      string  `json:"code"`
	Error     string  `json:"error"`
}

// calls reads lists of calls, one per line. Every call of a list is endorsed before any is submitted, and all are
// submitted at once, so that they meet in one block.
func calls(net *network, input io.Reader, output io.Writer) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, messageLimit)
	encoder := json.NewEncoder(output)
	for lines.Scan() {
		var list []call
		if err := json.Unmarshal(lines.Bytes(), &list); err != nil {
			return err
		}
		outcomes := make([]outcome, len(list))
		endorsed := make([]*client.Transaction, len(list))
		each(len(list), func(place int) { endorsed[place] = endorse(net, list[place], &outcomes[place]) })
		each(len(list), func(place int) { commit(endorsed[place], &outcomes[place]) })
		if err := encoder.Encode(outcomes); err != nil {
			return err
		}
	}
	return lines.Err()
}

func each(count int, do func(place int)) {
	var all sync.WaitGroup
	for place := range count {
		all.Add(1)
		go func() {
			defer all.Done()
			do(place)
		}()
	}
	all.Wait()
}

// endorse returns what is to be submitted: nothing after a refusal, and nothing for a query.
func endorse(net *network, asked call, made *outcome) *client.Transaction {
	contract, err := net.contract(asked.Org, asked.User, asked.Chaincode)
	if err == nil && len(asked.Arguments) == 0 {
		err = fmt.Errorf("a call names at least a function")
	}
	if err != nil {
		made.Error = err.Error()
		return nil
	}
	proposal, err := contract.NewProposal(asked.Arguments[0], client.WithArguments(asked.Arguments[1:]...), client.WithTransient(asked.Transient))
	if err != nil {
		made.Error = err.Error()
		return nil
	}
	began := time.Now()
	defer func() { made.EndorseMS = float64(time.Since(began).Microseconds()) / 1000 }()
	if asked.Evaluate {
		made.Payload, err = proposal.Evaluate()
	} else {
		var transaction *client.Transaction
		if transaction, err = proposal.Endorse(); err == nil {
			made.Payload = transaction.Result()
			return transaction
		}
	}
	if err != nil {
		made.Error = explained(err).Error()
	}
	return nil
}

func commit(transaction *client.Transaction, made *outcome) {
	if transaction == nil {
		return
	}
	submitted, err := transaction.Submit()
	if err == nil {
		var found *client.Status
		if found, err = submitted.Status(); err == nil {
			made.Block, made.Code = found.BlockNumber, found.Code.String()
		}
	}
	if err != nil {
		made.Error = explained(err).Error()
	}
}

// explained adds what the peers said, which the gateway puts into the details of its error.
func explained(err error) error {
	var said []string
	for _, detail := range status.Convert(errors.Unwrap(err)).Details() {
		if found, ok := detail.(*gateway.ErrorDetail); ok {
			said = append(said, found.GetMspId()+": "+found.GetMessage())
		}
	}
	if len(said) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(said, "; "))
}
