package prompt

import (
	"errors"
	"strconv"
	"strings"
)

// Latest names the newest version, published or not.
const Latest = "latest"

// Reference is a prompt or partial as a path or a template names it: by its id or slug, and
// a version.
type Reference struct {
	Name string
	// Version is empty for the published one, otherwise Latest, a number, or (for prompts)
	// the name or id of a label.
	Version string
}

// ParseReference splits name@version.
func ParseReference(text string) Reference {
	name, version, _ := strings.Cut(text, "@")
	return Reference{strings.TrimSpace(name), strings.TrimSpace(version)}
}

func (r Reference) String() string {
	if r.Version == "" {
		return r.Name
	}
	return r.Name + "@" + r.Version
}

// Number is the version that the reference names; the record's published and newest
// versions are given. ok is false for a label.
func (r Reference) Number(published, newest int64) (n int64, ok bool) {
	switch r.Version {
	case "":
		return published, true
	case Latest:
		return newest, true
	}
	n, err := strconv.ParseInt(r.Version, 10, 64)
	return n, err == nil && n > 0
}

// CheckReference refuses a reference that cannot name a partial in a template.
func CheckReference(text string) error {
	ref := ParseReference(text)
	if ref.Name == "" {
		return errors.New("this partial has no name")
	}
	if _, ok := ref.Number(1, 1); !ok {
		return errors.New("a partial is named as slug, slug@latest or slug@ with the number of a version; labels do not name partials")
	}
	return nil
}
