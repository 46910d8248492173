// Command detect tells the peer whether a package is a chaincode service.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"attestree/network/helpers/ccaas/internal/connection"
)

func main() {
	arguments := connection.Arguments(2, "detect SOURCE METADATA")
	connection.Exit(detect(arguments[1]))
}

func detect(metadata string) error {
	content, err := os.ReadFile(filepath.Join(metadata, "metadata.json"))
	if err != nil {
		return err
	}
	var chaincode struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(content, &chaincode); err != nil {
		return err
	}
	if chaincode.Type != "ccaas" {
		return fmt.Errorf("chaincode type %q is not ccaas", chaincode.Type)
	}
	return nil
}
