// The probe's put and get in Go, on Fabric's own shim: what the Python shim is compared with.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/hyperledger/fabric-chaincode-go/v2/shim"
	"github.com/hyperledger/fabric-protos-go-apiv2/peer"
)

const tlsFolder = "/etc/attestree/tls/"

type store struct{}

func (store) Init(shim.ChaincodeStubInterface) *peer.Response { return shim.Success(nil) }

func (store) Invoke(stub shim.ChaincodeStubInterface) *peer.Response {
	payload, err := call(stub, stub.GetArgs())
	if err != nil {
		return shim.Error(err.Error())
	}
	return shim.Success(payload)
}

func call(stub shim.ChaincodeStubInterface, arguments [][]byte) ([]byte, error) {
	if len(arguments) < 2 {
		return nil, fmt.Errorf("a function and a key are needed")
	}
	function, key, rest := string(arguments[0]), string(arguments[1]), arguments[2:]
	switch {
	case function == "put" && len(rest) == 1:
		return nil, stub.PutState(key, rest[0])
	case function == "get" && len(rest) == 0:
		value, err := stub.GetState(key)
		if err == nil && value == nil {
			err = fmt.Errorf("no value under %q", key)
		}
		return value, err
	case function == "put_many" && len(rest) == 2:
		return putMany(stub, key, string(rest[0]), string(rest[1]))
	case function == "get_many" && len(rest) == 1:
		return getMany(stub, key, string(rest[0]))
	}
	return nil, fmt.Errorf("unknown function %q with %d arguments", function, len(arguments)-1)
}

func putMany(stub shim.ChaincodeStubInterface, prefix, countText, sizeText string) ([]byte, error) {
	keys, err := keysOf(prefix, countText)
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(sizeText)
	if err != nil {
		return nil, err
	}
	stub.StartWriteBatch()
	for _, key := range keys {
		if err := stub.PutState(key, fill(key, size)); err != nil {
			return nil, err
		}
	}
	if err := stub.FinishWriteBatch(); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]int{"written": len(keys)})
}

func getMany(stub shim.ChaincodeStubInterface, prefix, countText string) ([]byte, error) {
	keys, err := keysOf(prefix, countText)
	if err != nil {
		return nil, err
	}
	values, err := stub.GetMultipleStates(keys...)
	if err != nil {
		return nil, err
	}
	digest, found, bytes := sha256.New(), 0, 0
	for _, value := range values {
		if value != nil {
			digest.Write(value)
			found, bytes = found+1, bytes+len(value)
		}
	}
	return json.Marshal(map[string]any{"bytes": bytes, "found": found, "sha256": fmt.Sprintf("%x", digest.Sum(nil))})
}

func keysOf(prefix, countText string) ([]string, error) {
	count, err := strconv.Atoi(countText)
	if err != nil || count < 1 || count > 100_000 {
		return nil, fmt.Errorf("count must be 1 to 100000")
	}
	keys := make([]string, count)
	for number := range keys {
		keys[number] = fmt.Sprintf("%s%06d", prefix, number)
	}
	return keys, nil
}

func fill(key string, size int) []byte {
	value := make([]byte, size)
	for place := 0; place < size; {
		place += copy(value[place:], key)
	}
	return value
}

func read(name string) []byte {
	content, err := os.ReadFile(tlsFolder + name)
	if err != nil {
		log.Fatal(err)
	}
	return content
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: chaincode PACKAGE_ID ADDRESS")
	}
	server := &shim.ChaincodeServer{
		CCID: os.Args[1], Address: os.Args[2], CC: store{},
		TLSProps: shim.TLSProperties{Key: read("server.key"), Cert: read("server.crt"), ClientCACerts: read("ca.crt")},
	}
	log.Fatal(server.Start())
}
