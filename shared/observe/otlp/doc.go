// Package otlp encodes spans and metrics as requests of the OpenTelemetry protocol, in
// protobuf. It is only an encoder of a few messages: OpenTelemetry's own library would add
// several megabytes to every function that links it.
package otlp
