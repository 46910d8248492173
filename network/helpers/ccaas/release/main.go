// Command release hands the peer the address and TLS material of a chaincode service.
package main

import (
	"path/filepath"

	"attestree/network/helpers/ccaas/internal/connection"
)

func main() {
	arguments := connection.Arguments(2, "release BUILD_OUTPUT RELEASE")
	connection.Exit(connection.Copy(arguments[0], filepath.Join(arguments[1], "chaincode", "server")))
}
