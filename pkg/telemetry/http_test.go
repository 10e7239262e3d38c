//go:build !otlp_grpc

package telemetry_test

const (
	overGRPC   = false
	grpcLogged = "use http/protobuf, or build with -tags otlp_grpc"
)
