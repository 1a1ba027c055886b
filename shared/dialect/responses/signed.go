package responses

import (
	"strings"

	"gateway/shared/chat"
)

// What precedes the value in the encrypted content of a reasoning item.
const (
	signatureOf = "s." // signature of the summary
	hiddenData  = "d." // reasoning that only its provider can read
)

// sealSigned is the encrypted content for a part of reasoning; "" when it is not signed.
// origin is the provider's dialect, which is used when the part names none.
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
	if by, own, ok := chat.UnmarkSigned(value); ok && by == name {
		_, own = cutID(own)
		return own // the provider's own, on its way back to a client of this dialect
	}
	return chat.MarkSigned(origin, kind+value)
}

// openSigned takes the encrypted content of an item apart. Content without a mark was made
// by a provider of this dialect.
func openSigned(p chat.Part, encrypted string) chat.Part {
	origin, value, ok := chat.UnmarkSigned(encrypted)
	if !ok {
		p.Origin, p.Signature = name, chat.MarkSigned(name, ":"+encrypted)
		return p
	}
	p.Origin = origin
	if data, hidden := strings.CutPrefix(value, hiddenData); hidden {
		p.Kind, p.Text, p.Data = chat.RedactedReasoned, "", data
		return p
	}
	p.Signature = strings.TrimPrefix(value, signatureOf)
	return p
}

// signItem returns the signature under which a provider's reasoning item is stored: its
// id and its encrypted content.
func signItem(id, encrypted string) string {
	if encrypted == "" {
		return ""
	}
	return chat.MarkSigned(name, id+":"+encrypted)
}

// ownItem returns id and encrypted content of a part that signItem has signed; false for
// reasoning of others.
func ownItem(p *chat.Part) (id, encrypted string, ok bool) {
	by, value, ok := chat.UnmarkSigned(p.Signature)
	if !ok || by != name {
		return "", "", false
	}
	id, encrypted = cutID(value)
	return id, encrypted, encrypted != ""
}

func cutID(value string) (id, encrypted string) {
	id, encrypted, ok := strings.Cut(value, ":")
	if !ok {
		return "", value
	}
	return id, encrypted
}
