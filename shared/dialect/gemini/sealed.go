package gemini

import (
	"encoding/base64"
	"strings"

	"gateway/shared/chat"
)

// Reasoning that another provider signed reaches clients of this shape as thoughtSignature of a
// thinking part, and comes back in it. The member holds bytes, so the mark that says who signed
// is in base64.

const (
	signatureOf = "s." // signature of the part's text
	hiddenData  = "d." // reasoning that only its provider can read
)

// sealSigned returns the thoughtSignature of a part that origin's provider signed, "" for a part
// without a signature.
func sealSigned(p *chat.Part, origin string) string {
	if p.Origin != "" {
		origin = p.Origin
	}
	kind, value := signatureOf, p.Signature
	if p.Kind == chat.RedactedReasoned {
		kind, value = hiddenData, p.Data
	}
	if value == "" {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(chat.MarkSigned(origin, kind+value)))
}

// openSigned returns the part, without its text, of which sealSigned gave a client the signature.
// ok is false for a signature of a Gemini model.
func openSigned(signature string) (p chat.Part, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return p, false
	}
	origin, value, ok := chat.UnmarkSigned(string(raw))
	if !ok {
		return p, false
	}
	if data, hidden := strings.CutPrefix(value, hiddenData); hidden {
		return chat.Part{Kind: chat.RedactedReasoned, Origin: origin, Data: data}, true
	}
	value, ok = strings.CutPrefix(value, signatureOf)
	return chat.Part{Kind: chat.Reasoned, Origin: origin, Signature: value}, ok
}
