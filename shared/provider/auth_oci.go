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
	"net/http"
	"strconv"
	"strings"
	"time"

	"gateway/shared/fault"
)

// authorizeOCI signs the request with Oracle Cloud's scheme: RSA-SHA256 over the
// request line, date, host and, with a body, its hash, type and length.
func authorizeOCI(t *Target, _ context.Context, req *http.Request, body []byte) error {
	keyID, err := ociKeyID(t)
	if err != nil {
		return err
	}
	key, err := ociKey(t)
	if err != nil {
		return err
	}
	if body, err = signedBody(req, body); err != nil {
		return err
	}
	now := time.Now()
	if t.Signer != nil {
		now = t.Signer.Now()
	}
	h := req.Header
	h.Set("Date", now.UTC().Format(http.TimeFormat))
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	target := req.URL.RequestURI()
	names := []string{"(request-target)", "date", "host"}
	lines := []string{"(request-target): " + strings.ToLower(req.Method) + " " + target, "date: " + h.Get("Date"), "host: " + host}
	if len(body) > 0 {
		sum := sha256.Sum256(body)
		h.Set("X-Content-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
		names = append(names, "x-content-sha256", "content-type", "content-length")
		lines = append(lines, "x-content-sha256: "+h.Get("X-Content-Sha256"), "content-type: "+h.Get("Content-Type"), "content-length: "+strconv.Itoa(len(body)))
	}
	digest := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return fault.Invalid("oracle_private_key", "oracle_private_key is too short to sign with")
	}
	h.Set("Authorization", `Signature version="1",keyId="`+keyID+`",algorithm="rsa-sha256",headers="`+strings.Join(names, " ")+
		`",signature="`+base64.StdEncoding.EncodeToString(signature)+`"`)
	return nil
}

// ociKeyID names the key: tenancy, user and fingerprint.
func ociKeyID(t *Target) (string, error) {
	var parts [3]string
	for i, name := range [...]string{"oracle_tenancy", "oracle_user", "oracle_fingerprint"} {
		v := t.Field(name)
		if v == "" || !printable(v) || strings.ContainsAny(v, `"/\`) {
			return "", fault.Invalid(name, "%s is required by oracle and must be an identifier", name)
		}
		parts[i] = v
	}
	return strings.Join(parts[:], "/"), nil
}

// ociKey reads the private key: PEM, also on one line with \n for its line ends, in PKCS #1
// or PKCS #8. A PKCS #1 key may be encrypted with oracle_key_passphrase.
func ociKey(t *Target) (*rsa.PrivateKey, error) {
	const field = "oracle_private_key"
	text := strings.ReplaceAll(t.Field(field), `\n`, "\n")
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, fault.Invalid(field, "oracle_private_key must be an RSA private key in PEM")
	}
	der := block.Bytes
	//lint:ignore SA1019 Oracle's own tools still make such keys
	if x509.IsEncryptedPEMBlock(block) {
		pass := t.Field("oracle_key_passphrase")
		if pass == "" {
			return nil, fault.Invalid("oracle_key_passphrase", "oracle_key_passphrase is required: the private key is encrypted")
		}
		var err error
		//lint:ignore SA1019 see above
		if der, err = x509.DecryptPEMBlock(block, []byte(pass)); err != nil {
			return nil, fault.Invalid("oracle_key_passphrase", "oracle_key_passphrase cannot decrypt the private key")
		}
	}
	if block.Type == "ENCRYPTED PRIVATE KEY" {
		return nil, fault.Invalid(field, "oracle_private_key is an encrypted PKCS #8 key; send it decrypted; the gateway encrypts it")
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	if any, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		if key, ok := any.(*rsa.PrivateKey); ok {
			return key, nil
		}
	}
	return nil, fault.Invalid(field, "oracle_private_key must be an RSA private key in PEM")
}
