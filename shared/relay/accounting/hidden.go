package accounting

import (
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/provider/modelmeta"
	"gateway/shared/relay/approval"
)

// TokensOfImage is the most tokens that an image is billed: 2,833 and 5,667 for each of eight
// tiles, the rate of gpt-4o-mini (platform.openai.com, Images and vision).
const TokensOfImage = 2833 + 8*5667

// HiddenInput is input that a body refers to and does not contain.
type HiddenInput struct {
	Images int64  // fetched by the provider; each has at most TokensOfImage
	Turns  int64  // tokens of earlier turns with known usage
	Field  string // of the first reference to input of any length; "" if there is none
	// Uses and Fetched are how often tools of the provider may add to the input, and the most
	// tokens that each of these uses adds.
	Uses, Fetched int64
}

// FindHiddenInput returns the hidden input of a JSON body. Bodies that are not JSON have none. seen returns
// the size of earlier turns by id, if known.
func FindHiddenInput(body []byte, seen EarlierTurns) (h HiddenInput) {
	h.Field = reference.HeldItem(body, func(id string) bool { return seen.add(id, &h.Turns) })
	for _, t := range reference.FindHosted(body) {
		switch {
		case strings.HasPrefix(t.Label, approval.LabelPrefix): // the gateway runs it
		case t.Uses > 0 && h.Uses < 1000:
			h.Uses, h.Fetched = h.Uses+t.Uses, max(h.Fetched, t.Tokens)
		case h.Field == "":
			h.Field = t.Field
		}
	}
	if !reference.MayNameObjects(body) {
		return h
	}
	refs, _ := reference.Find(body) // what precedes an error counts
	for i := range refs {
		switch r := &refs[i]; {
		case !r.Context:
		case isImage(r):
			h.Images++
		case isTurn(r) && seen.add(r.ID, &h.Turns):
		case h.Field == "":
			h.Field = r.Field
		}
	}
	return h
}

// EarlierTurns returns the tokens of the response or interaction with an id and of all turns before
// it, or of an item with that id; ok is false if they are not known.
type EarlierTurns func(id string) (tokens int64, ok bool)

// add adds the tokens of a turn to a sum, if they are known. A nil Seen has none.
func (s EarlierTurns) add(id string, sum *int64) bool {
	if s == nil {
		return false
	}
	n, ok := s(id)
	*sum += n
	return ok
}

// isTurn reports whether a reference is one that a request of Responses or Interactions
// continues. Its target does not change, unlike a conversation or a thread, to which others may
// add.
func isTurn(r *reference.Reference) bool {
	switch strings.ToLower(strings.ReplaceAll(r.Field, "_", "")) {
	case "previousresponseid", "previousinteractionid":
		return true
	}
	return false
}

// isImage reports whether a reference is the address of an image.
func isImage(r *reference.Reference) bool {
	if r.Kind != reference.URL {
		return false
	}
	field := strings.ToLower(strings.ReplaceAll(r.Field, "_", ""))
	return strings.HasSuffix(field, "imageurl") || strings.HasSuffix(field, "imageurl.url")
}

// hosts are the providers with models that others serve under the same names.
var hosts = [...]string{"openai", "anthropic", "google"}

// ContextWindow returns the context window of a provider's model in tokens, by the first of its names
// that is known; 0 if none is.
func ContextWindow(provider string, names ...string) int64 {
	for _, name := range names {
		if base, ok := strings.CutPrefix(name, "ft:"); ok { // ft:BASE:ORGANIZATION:SUFFIX:ID
			name, _, _ = strings.Cut(base, ":")
		}
		for _, host := range append([]string{provider}, hosts[:]...) {
			if m := modelmeta.Of(host, name); m != nil && m.Window > 0 {
				return m.Window
			}
		}
	}
	return 0
}
