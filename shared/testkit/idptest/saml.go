// Package idptest runs identity providers for tests, as processes of their own.
package idptest

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/shared/signin/saml"
)

// SAML is an identity provider of SAML 2.0: the npm package samlp. It serves /metadata and
// /sso; POST /next sets who signs in next.
type SAML struct {
	URL       string
	Key, Cert []byte // PKCS#8 and DER
}

// StartSAML starts an identity provider that runs until the test ends. testdeps is the
// folder of the package. If it is not installed, the test is skipped; when CI is set, it
// fails.
func StartSAML(t *testing.T, testdeps, issuer string) *SAML {
	t.Helper()
	dir, err := filepath.Abs(testdeps)
	if err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "node_modules", "samlp"))
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("samlp is missing: %v", err)
		}
		t.Skipf("NOT TESTED WITH A SAML IDENTITY PROVIDER: %v; run: npm ci --prefix scripts/testdeps", err)
	}
	i := &SAML{}
	if i.Key, i.Cert, err = saml.NewKey("idp", time.Now()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, filepath.Join(dir, "samlp.cjs"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	config, err := json.Marshal(map[string]string{"issuer": issuer, "key": PEM("PRIVATE KEY", i.Key), "cert": PEM("CERTIFICATE", i.Cert)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(append(config, '\n')); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	port, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err != nil || !ok {
		t.Fatalf("the identity provider says %q: %v", line, err)
	}
	i.URL = "http://127.0.0.1:" + port
	return i
}

// PEM encodes a block of the given kind.
func PEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
