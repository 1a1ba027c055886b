//go:build !nomock

package main

import "gateway/local/mockprovider"

// mockLinked reports whether this build contains the mock provider.
const mockLinked = true

type mockServer = mockprovider.Server

// newMock starts the mock provider on a free port.
func newMock() (*mockServer, error) {
	s := mockprovider.New(mockprovider.Options{})
	_, err := s.Listen("127.0.0.1:0")
	return s, err
}
