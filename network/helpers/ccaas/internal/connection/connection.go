// Package connection moves a chaincode service's address through the peer's external builder.
package connection

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// File is what a chaincode-as-a-service package holds: where the service listens, and the TLS material to reach it.
const File = "connection.json"

// Copy puts connection.json from one directory into another, if it is JSON with an address.
func Copy(from, to string) error {
	content, err := os.ReadFile(filepath.Join(from, File))
	if err != nil {
		return err
	}
	var connection struct {
		Address string `json:"address"`
	}
	if err := json.Unmarshal(content, &connection); err != nil {
		return fmt.Errorf("%s: %w", File, err)
	}
	if connection.Address == "" {
		return fmt.Errorf("%s names no address", File)
	}
	if err := os.MkdirAll(to, 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, File), content, 0o640)
}

// Exit ends a builder program the way the peer reads it: 0 for yes, 1 with a line on stderr otherwise.
func Exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Arguments returns exactly n arguments or ends the program with its usage.
func Arguments(n int, usage string) []string {
	if len(os.Args) != n+1 {
		fmt.Fprintln(os.Stderr, "usage:", usage)
		os.Exit(2)
	}
	return os.Args[1:]
}
