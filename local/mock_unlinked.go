//go:build nomock

package main

import "errors"

const mockLinked = false

// mockServer replaces the mock provider; there is never one.
type mockServer struct{}

// URL returns "".
func (*mockServer) URL() string { return "" }

// Close does nothing.
func (*mockServer) Close() error { return nil }

func newMock() (*mockServer, error) {
	return nil, errors.New("-mock: this build has no mock provider; use -mock=false")
}
