package chat

import (
	"crypto/sha256"
	"encoding/hex"

	"gateway/shared/fault"
)

// Rename changes the tool names of r for a host that accepts letters, digits, _ and - up to max
// bytes. Invalid names are changed deterministically, and r.Renamed maps them back. If two
// names would become equal, it returns a 400.
func (r *Request) Rename(max int) error {
	r.Renamed = nil
	if r.namesFit(max) {
		return nil
	}
	own := make(map[string]string)
	r.Renamed = make(map[string]string)
	take := func(name, path string) error {
		if name == "" {
			return nil
		}
		legal := LegalName(name, max)
		if other, ok := own[legal]; ok && other != name {
			return fault.Invalid(path, "The tool names %q and %q cannot be told apart by this provider, which takes letters, digits, _ and - only, up to %d", clipName(other), clipName(name), max)
		}
		own[legal] = name
		if legal != name {
			r.Renamed[legal] = name
		}
		return nil
	}
	for i := range r.Tools {
		if err := take(r.Tools[i].Name, "tools"); err != nil {
			return err
		}
	}
	if err := take(r.ToolChoice.Name, "tool_choice"); err != nil {
		return err
	}
	for i := range r.Messages {
		for j := range r.Messages[i].Parts {
			if c := r.Messages[i].Parts[j].Call; c != nil {
				if err := take(c.Name, "messages"); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *Request) namesFit(max int) bool {
	for i := range r.Tools {
		if !fits(r.Tools[i].Name, max) {
			return false
		}
	}
	for i := range r.Messages {
		for j := range r.Messages[i].Parts {
			if c := r.Messages[i].Parts[j].Call; c != nil && !fits(c.Name, max) {
				return false
			}
		}
	}
	return fits(r.ToolChoice.Name, max)
}

func clipName(s string) string {
	if len(s) > 80 {
		return s[:80]
	}
	return s
}

func legalByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func fits(name string, max int) bool {
	if len(name) > max {
		return false
	}
	for i := range len(name) {
		if !legalByte(name[i]) {
			return false
		}
	}
	return true
}

// LegalName replaces each byte of name that is not a letter, a digit, _ or - by _. A name that
// is too long is truncated and ends in a part of its hash.
func LegalName(name string, max int) string {
	if fits(name, max) {
		return name
	}
	b := []byte(name)
	for i, c := range b {
		if !legalByte(c) {
			b[i] = '_'
		}
	}
	if len(b) > max {
		sum := sha256.Sum256([]byte(name))
		tail := "_" + hex.EncodeToString(sum[:4])
		b = append(b[:max-len(tail)], tail...)
	}
	return string(b)
}
