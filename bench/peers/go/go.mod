module attestree/bench

go 1.24

require (
	github.com/hyperledger/fabric-chaincode-go/v2 v2.3.0
	github.com/hyperledger/fabric-gateway v1.8.0
	github.com/hyperledger/fabric-protos-go-apiv2 v0.3.7
	google.golang.org/grpc v1.73.0
)

require (
	github.com/miekg/pkcs11 v1.1.1 // indirect
	golang.org/x/crypto v0.40.0 // indirect
	golang.org/x/net v0.41.0 // indirect
	golang.org/x/sys v0.34.0 // indirect
	golang.org/x/text v0.27.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250324211829-b45e905df463 // indirect
	google.golang.org/protobuf v1.36.6 // indirect
)
