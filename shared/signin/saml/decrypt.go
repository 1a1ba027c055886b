package saml

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1" // RSA-OAEP may use it for its mask, which is secure
	_ "crypto/sha256"
	_ "crypto/sha512"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/beevik/etree"
)

// Supported key transport algorithms: not RSA 1.5.
const (
	oaepFirst  = "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p" // its mask always uses SHA-1
	oaepSecond = "http://www.w3.org/2009/xmlenc11#rsa-oaep"
	nsCipher11 = "http://www.w3.org/2009/xmlenc11#"
)

var digests = map[string]crypto.Hash{
	"": crypto.SHA1, "http://www.w3.org/2000/09/xmldsig#sha1": crypto.SHA1, "http://www.w3.org/2001/04/xmlenc#sha256": crypto.SHA256,
	"http://www.w3.org/2001/04/xmldsig-more#sha384": crypto.SHA384, "http://www.w3.org/2001/04/xmlenc#sha512": crypto.SHA512,
}

var masks = map[string]crypto.Hash{
	"": crypto.SHA1, nsCipher11 + "mgf1sha1": crypto.SHA1, nsCipher11 + "mgf1sha256": crypto.SHA256, nsCipher11 + "mgf1sha384": crypto.SHA384, nsCipher11 + "mgf1sha512": crypto.SHA512,
}

// ciphers are the ciphers for content, with the lengths of their keys in bytes.
var ciphers = map[string]struct {
	key int
	gcm bool
}{
	nsCipher11 + "aes128-gcm": {16, true}, nsCipher11 + "aes192-gcm": {24, true}, nsCipher11 + "aes256-gcm": {32, true},
	nsCipher + "aes128-cbc": {16, false}, nsCipher + "aes192-cbc": {24, false}, nsCipher + "aes256-cbc": {32, false},
}

// errSealed is the only error of encrypted assertions. Revealing the failed step would allow an
// attacker to decrypt an assertion by many attempts.
var errSealed = errors.New("the encrypted assertion cannot be opened, or is not one that the identity provider has signed")

// decrypt opens an EncryptedAssertion.
func decrypt(e *etree.Element, key *rsa.PrivateKey) ([]byte, error) {
	data := only(e, nsCipher, "EncryptedData")
	if data == nil || key == nil {
		return nil, errSealed
	}
	info := only(data, nsSignature, "KeyInfo")
	wrapped := only(info, nsCipher, "EncryptedKey")
	if beside := only(e, nsCipher, "EncryptedKey"); wrapped == nil {
		wrapped = beside
	} else if beside != nil {
		return nil, errSealed
	}
	how := only(data, nsCipher, "EncryptionMethod")
	if wrapped == nil || how == nil {
		return nil, errSealed
	}
	kind, ok := ciphers[attribute(how, "Algorithm")]
	if !ok {
		return nil, errSealed
	}
	secret, err := unwrap(wrapped, key)
	if err != nil || len(secret) != kind.key {
		return nil, errSealed
	}
	content, err := cipherValue(data)
	if err != nil {
		return nil, errSealed
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, errSealed
	}
	if kind.gcm {
		return openGCM(block, content)
	}
	return openCBC(block, content)
}

func unwrap(e *etree.Element, key *rsa.PrivateKey) ([]byte, error) {
	how := only(e, nsCipher, "EncryptionMethod")
	if how == nil {
		return nil, errSealed
	}
	digest, mask := "", ""
	if d := only(how, nsSignature, "DigestMethod"); d != nil {
		digest = attribute(d, "Algorithm")
	}
	if m := only(how, nsCipher11, "MGF"); m != nil {
		mask = attribute(m, "Algorithm")
	}
	opts := &rsa.OAEPOptions{}
	var ok, known bool
	opts.Hash, ok = digests[digest]
	opts.MGFHash, known = masks[mask]
	switch attribute(how, "Algorithm") {
	case oaepFirst:
		opts.MGFHash = crypto.SHA1
	case oaepSecond:
	default:
		ok = false
	}
	if !ok || !known {
		return nil, errSealed
	}
	content, err := cipherValue(e)
	if err != nil {
		return nil, err
	}
	return key.Decrypt(rand.Reader, content, opts)
}

// cipherValue returns the inline content of the element; references are not fetched.
func cipherValue(e *etree.Element) ([]byte, error) {
	data := only(e, nsCipher, "CipherData")
	value, ok := text(only(data, nsCipher, "CipherValue"))
	if !ok || len(data.ChildElements()) != 1 {
		return nil, errSealed
	}
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value), ""))
}

func openGCM(block cipher.Block, content []byte) ([]byte, error) {
	c, err := cipher.NewGCM(block)
	if err != nil || len(content) < c.NonceSize() {
		return nil, errSealed
	}
	plain, err := c.Open(nil, content[:c.NonceSize()], content[c.NonceSize():], nil)
	if err != nil {
		return nil, errSealed
	}
	return plain, nil
}

func openCBC(block cipher.Block, content []byte) ([]byte, error) {
	if len(content) < 2*aes.BlockSize || len(content)%aes.BlockSize != 0 {
		return nil, errSealed
	}
	plain := make([]byte, len(content)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, content[:aes.BlockSize]).CryptBlocks(plain, content[aes.BlockSize:])
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > aes.BlockSize {
		return nil, errSealed
	}
	return plain[:len(plain)-pad], nil
}
