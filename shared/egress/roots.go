package egress

import (
	"crypto/x509"
	"os"

	"gateway/shared/fault"
)

// EnvRoots names a file of PEM certificates by which servers may be verified, in addition
// to those of the system.
const EnvRoots = "GATEWAY_CA_BUNDLE"

// Roots reads that file. Without one it returns nil, for the system's roots. Errors name
// the variable and quote nothing of the file.
func Roots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.Invalid(EnvRoots, "names a file that cannot be read").WithCause(err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // this machine has no roots
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fault.Invalid(EnvRoots, "names a file without a PEM certificate")
	}
	return roots, nil
}
