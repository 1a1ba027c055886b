package app

import (
	"fmt"
	"os"
)

// EnvHTTP is "standard" where net/http shall serve and call, not the engines of this
// project.
const EnvHTTP = "GATEWAY_HTTP"

// StandardHTTP reads EnvHTTP. It is the one place that does; what it says is passed
// on in Settings and in the host's options.
func StandardHTTP() (bool, error) {
	switch os.Getenv(EnvHTTP) {
	case "":
		return false, nil
	case "standard":
		return true, nil
	}
	return false, fmt.Errorf("%s must be standard, or not be set", EnvHTTP)
}
