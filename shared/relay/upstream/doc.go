// Package upstream prepares requests to a provider: bodies that the transport may still read
// after the response has started, and the beta features and versions that are forwarded from a
// client.
package upstream
