// Package otlp encodes spans and metrics as the requests of the OpenTelemetry
// protocol, in protobuf. It is an encoder of a few messages and no more: the
// kit of OpenTelemetry would be several megabytes of every function that links it.
package otlp
