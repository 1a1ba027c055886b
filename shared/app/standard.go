package app

import (
	"fmt"
	"os"
)

// EnvHTTP is "standard" where net/http is to serve and to call, instead of this project's
// own engines.
const EnvHTTP = "GATEWAY_HTTP"

// StandardHTTP reads EnvHTTP. Nothing else does: its value is passed on in Settings and in
// the host's options.
func StandardHTTP() (bool, error) {
	switch os.Getenv(EnvHTTP) {
	case "":
		return false, nil
	case "standard":
		return true, nil
	}
	return false, fmt.Errorf("%s must be standard, or not be set", EnvHTTP)
}
