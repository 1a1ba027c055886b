package signing

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Env is the environment variable with the operator's key.
const Env = "JWT_PRIVATE_KEY"

var errGiven = errors.New(Env + " must be private keys of RSA in PEM (PKCS #8 or #1), of 2048 bits or more, without a password")

// Check returns an error for an invalid value of Env, without quoting it.
func Check(value string) error {
	_, err := readGiven(value)
	return err
}

// readGiven parses the keys of Env: the first one signs, all are published. \n counts as a line
// end, because many environments do not allow line ends in variables.
func readGiven(value string) (out []*Key, err error) {
	rest := []byte(strings.ReplaceAll(strings.TrimSpace(value), `\n`, "\n"))
	for len(rest) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errGiven
		}
		key, err := readBlock(block)
		if err != nil {
			return nil, fmt.Errorf("%w (key %d)", errGiven, len(out)+1)
		}
		out = append(out, key)
		rest = []byte(strings.TrimSpace(string(rest)))
	}
	return out, nil
}

func readBlock(block *pem.Block) (*Key, error) {
	var private any
	var err error
	if block.Type == "RSA PRIVATE KEY" {
		private, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	} else {
		private, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, err
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, errKind
	}
	return newKey(RS256, signer)
}
