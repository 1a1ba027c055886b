package provider

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gateway/shared/fault"
)

func ociFields(t *testing.T) (*rsa.PrivateKey, map[string]string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key, map[string]string{
		"oracle_tenancy": "ocid1.tenancy.oc1..a", "oracle_user": "ocid1.user.oc1..b", "oracle_fingerprint": "aa:bb:cc",
		"oracle_private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		"oracle_region":      "eu-frankfurt-1", "oracle_compartment_id": "ocid1.compartment.oc1..c",
	}
}

func ociTarget(t *testing.T, fields map[string]string) *Target {
	t.Helper()
	p, ok := ByID("oracle")
	if !ok {
		t.Fatal("no oracle")
	}
	return &Target{Provider: p, Credential: Credential{Fields: fields}}
}

var ociHeader = regexp.MustCompile(`^Signature version="1",keyId="([^"]+)",algorithm="rsa-sha256",headers="([^"]+)",signature="([^"]+)"$`)

func TestOracleRequestsAreSigned(t *testing.T) {
	key, fields := ociFields(t)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 such keys are still in use
	locked, err := x509.EncryptPEMBlock(rand.Reader, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key), []byte("pass"), x509.PEMCipherAES128)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{
		"pkcs1": fields["oracle_private_key"], "on one line": strings.ReplaceAll(fields["oracle_private_key"], "\n", `\n`),
		"pkcs8": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})), "locked": string(pem.EncodeToMemory(locked)),
	}
	for name, form := range forms {
		fields["oracle_private_key"], fields["oracle_key_passphrase"] = form, "pass"
		for _, body := range []string{`{"a":1}`, ""} {
			u, err := ExactURL("https://inference.example/20231130/actions/chat?x=%2Fy")
			if err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequest("POST", "https://inference.example/", nil)
			req.URL, req.Host = u, ""
			req.Header.Set("Content-Type", "application/json")
			if err := ociTarget(t, fields).Authorize(context.Background(), req, []byte(body)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			m := ociHeader.FindStringSubmatch(req.Header.Get("Authorization"))
			if m == nil || m[1] != "ocid1.tenancy.oc1..a/ocid1.user.oc1..b/aa:bb:cc" {
				t.Fatalf("%s: %q", name, req.Header.Get("Authorization"))
			}
			var lines []string
			for _, h := range strings.Fields(m[2]) {
				value := req.Header.Get(h)
				switch h {
				case "(request-target)":
					value = "post /20231130/actions/chat?x=%2Fy"
				case "host":
					value = "inference.example"
				case "content-length":
					value = strconv.Itoa(len(body))
				case "x-content-sha256":
					sum := sha256.Sum256([]byte(body))
					if value != base64.StdEncoding.EncodeToString(sum[:]) {
						t.Errorf("%s: hash %s", name, value)
					}
				}
				lines = append(lines, h+": "+value)
			}
			if (len(lines) == 6) != (body != "") {
				t.Errorf("%s: signed %v", name, lines)
			}
			signature, err := base64.StdEncoding.DecodeString(m[3])
			if err != nil {
				t.Fatal(err)
			}
			digest := sha256.Sum256([]byte(strings.Join(lines, "\n")))
			if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], signature); err != nil {
				t.Errorf("%s, body %q: %v", name, body, err)
			}
		}
	}
}

func TestBadOracleCredentialsNameTheField(t *testing.T) {
	_, good := ociFields(t)
	for name, c := range map[string][3]string{
		"no user":         {"oracle_user", "", "oracle_user"},
		"a quote":         {"oracle_fingerprint", `aa"bb`, "oracle_fingerprint"},
		"a slash":         {"oracle_tenancy", "a/b", "oracle_tenancy"},
		"not PEM":         {"oracle_private_key", "key", "oracle_private_key"},
		"not RSA":         {"oracle_private_key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "oracle_private_key"},
		"encrypted PKCS8": {"oracle_private_key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n", "oracle_private_key"},
	} {
		fields := map[string]string{}
		for k, v := range good {
			fields[k] = v
		}
		fields[c[0]] = c[1]
		req := httptest.NewRequest("POST", "https://inference.example/x", nil)
		err := ociTarget(t, fields).Authorize(context.Background(), req, []byte("{}"))
		if f := fault.From(err); err == nil || f.Status() != 400 || f.Field != c[2] || req.Header.Get("Authorization") != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
