// Package upstream prepares what is sent to a provider: request bodies that the transport may
// still read after the response has begun, and the beta features and versions that are forwarded
// from a client.
package upstream
