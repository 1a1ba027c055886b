package audit

import (
	"fmt"

	"gateway/shared/fault"
)

// Texts masks all texts below the name of a secret, for families that seal the entire value and
// show the masked one.
type Texts struct {
	Found bool           // there was a text
	Bad   []fault.Detail // texts that are masked already: a caller sent back what it had read
}

// Hide masks every text below v, in place where it can; path is where v is.
func (t *Texts) Hide(v any, path string) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return v
		}
		t.Found = true
		if Masked(v) {
			t.Bad = append(t.Bad, fault.Detail{Field: path, Message: "is masked, as reads show it; send the whole value"})
		}
		return Mask(v)
	case map[string]any:
		for k, e := range v {
			v[k] = t.Hide(e, path+"."+k)
		}
	case []any:
		for i, e := range v {
			v[i] = t.Hide(e, fmt.Sprintf("%s[%d]", path, i))
		}
	}
	return v
}

// Masked reports whether a text is what Mask makes.
func Masked(s string) bool {
	r := []rune(s)
	return s == "****" || len(r) == 8 && string(r[2:6]) == "****"
}
