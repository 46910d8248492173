// The client of the benchmark, the same for every chaincode: `load rate` measures, `load calls` runs given calls.
package main

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hyperledger/fabric-gateway/pkg/client"
	"github.com/hyperledger/fabric-gateway/pkg/hash"
	"github.com/hyperledger/fabric-gateway/pkg/identity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

const (
	channel      = "attestree"
	messageLimit = 100 << 20
)

// network knows where the peers are and keeps one connection per organisation, one gateway per identity.
type network struct {
	state, ports string
	lock         sync.Mutex
	connections  map[string]*grpc.ClientConn
	gateways     map[string]*client.Gateway
}

func main() {
	if len(os.Args) < 4 {
		fail(fmt.Errorf("usage: load rate|calls STATE PORTS [flags]"))
	}
	net := &network{
		state: os.Args[2], ports: os.Args[3],
		connections: map[string]*grpc.ClientConn{}, gateways: map[string]*client.Gateway{},
	}
	var err error
	switch os.Args[1] {
	case "rate":
		err = rate(net, os.Args[4:])
	case "calls":
		err = calls(net, os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("unknown command %q", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "load: %v\n", err)
	os.Exit(1)
}

func (net *network) contract(org, user, chaincode string) (*client.Contract, error) {
	net.lock.Lock()
	defer net.lock.Unlock()
	gateway, err := net.gateway(org, user)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", user, org, err)
	}
	return gateway.GetNetwork(channel).GetContract(chaincode), nil
}

func (net *network) gateway(org, user string) (*client.Gateway, error) {
	if known := net.gateways[org+"/"+user]; known != nil {
		return known, nil
	}
	msp := filepath.Join(net.state, "organisations", org, "users", user, "msp")
	certificatePEM, err := os.ReadFile(filepath.Join(msp, "signcerts", "cert.pem"))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(msp, "keystore", "key.pem"))
	if err != nil {
		return nil, err
	}
	certificate, err := identity.CertificateFromPEM(certificatePEM)
	if err != nil {
		return nil, err
	}
	key, err := identity.PrivateKeyFromPEM(keyPEM)
	if err != nil {
		return nil, err
	}
	who, err := identity.NewX509Identity("Org"+strings.TrimPrefix(org, "org")+"MSP", certificate)
	if err != nil {
		return nil, err
	}
	sign, err := identity.NewPrivateKeySign(key)
	if err != nil {
		return nil, err
	}
	connection, err := net.connection(org)
	if err != nil {
		return nil, err
	}
	made, err := client.Connect(who, client.WithSign(sign), client.WithHash(hash.SHA256), client.WithClientConnection(connection))
	net.gateways[org+"/"+user] = made
	return made, err
}

func (net *network) connection(org string) (*grpc.ClientConn, error) {
	if known := net.connections[org]; known != nil {
		return known, nil
	}
	root, err := os.ReadFile(filepath.Join(net.state, "organisations", org, "tlsca.pem"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(root) {
		return nil, fmt.Errorf("tlsca.pem of %s holds no certificate", org)
	}
	address := fmt.Sprintf("127.0.0.1:%s%s51", net.ports, strings.TrimPrefix(org, "org"))
	made, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(pool, "")),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageLimit), grpc.MaxCallSendMsgSize(messageLimit)))
	net.connections[org] = made
	return made, err
}
