// Command build has nothing to compile for a chaincode service: it keeps where the service listens.
package main

import "attestree/network/helpers/ccaas/internal/connection"

func main() {
	arguments := connection.Arguments(3, "build SOURCE METADATA OUTPUT")
	connection.Exit(connection.Copy(arguments[0], arguments[2]))
}
