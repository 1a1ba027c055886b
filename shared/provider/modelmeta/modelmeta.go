// Package modelmeta has metadata of models besides their prices: context window, input
// types, and end of life. It is informational: nothing is rejected because of it.
package modelmeta

import (
	"cmp"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed models.txt
var text string

// Model is the metadata of one model; zero values are unknown.
type Model struct {
	Window, Output int64    // tokens
	Inputs         []string // besides text: image, audio, video, document
	Deprecated     time.Time
	Shutdown       time.Time

	headers []header // headers for the responses that it made
}

type header struct {
	name   string
	values []string
}

type key struct{ provider, model string }

var table = sync.OnceValue(func() map[key]*Model {
	all, err := parse(text)
	if err != nil {
		panic("modelmeta: " + err.Error()) // cannot happen: a test reads the same file
	}
	return all
})

// Of returns the metadata of a provider's model; nil if there is none.
func Of(provider, model string) *Model { return table()[key{provider, model}] }

// Ending is a model of a provider with a known end of life.
type Ending struct {
	Name string
	*Model
}

// EndingOf returns the models of a provider that have a notice or a day of shutdown, by that day
// and name.
func EndingOf(provider string) (out []Ending) {
	for k, m := range table() {
		if k.provider == provider && len(m.headers) > 0 {
			out = append(out, Ending{k.model, m})
		}
	}
	slices.SortFunc(out, func(a, b Ending) int {
		return cmp.Or(a.Shutdown.Compare(b.Shutdown), a.Deprecated.Compare(b.Deprecated), strings.Compare(a.Name, b.Name))
	})
	return out
}

// SetHeaders announces the model's end of life, if known: Deprecation (RFC 9745) and
// Sunset (RFC 8594). It preserves headers of the provider. A nil Model sets nothing.
func (m *Model) SetHeaders(h http.Header) {
	if m == nil {
		return
	}
	for i := range m.headers {
		if _, present := h[m.headers[i].name]; !present {
			h[m.headers[i].name] = m.headers[i].values
		}
	}
}

func parse(text string) (map[key]*Model, error) {
	all := make(map[key]*Model)
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if len(f) != 7 {
			return nil, fmt.Errorf("models.txt:%d: want 7 columns, not %d", n, len(f))
		}
		m, err := read(f)
		if err != nil {
			return nil, fmt.Errorf("models.txt:%d: %w", n, err)
		}
		for provider := range strings.SplitSeq(f[0], ",") {
			for model := range strings.SplitSeq(f[1], ",") {
				if all[key{provider, model}] != nil {
					return nil, fmt.Errorf("models.txt:%d: %s of %s is listed twice", n, model, provider)
				}
				all[key{provider, model}] = m
			}
		}
	}
	return all, nil
}

func read(f []string) (*Model, error) {
	m := new(Model)
	for column, to := range map[int]*int64{2: &m.Window, 3: &m.Output} {
		if f[column] == "-" {
			continue
		}
		var err error
		if *to, err = strconv.ParseInt(f[column], 10, 64); err != nil || *to <= 0 {
			return nil, fmt.Errorf("%q is not a number of tokens", f[column])
		}
	}
	if f[4] != "-" {
		m.Inputs = strings.Split(f[4], ",")
	}
	for column, to := range map[int]*time.Time{5: &m.Deprecated, 6: &m.Shutdown} {
		if f[column] == "-" {
			continue
		}
		var err error
		if *to, err = time.Parse(time.DateOnly, f[column]); err != nil {
			return nil, fmt.Errorf("%q is not a day", f[column])
		}
	}
	if !m.Shutdown.IsZero() && m.Shutdown.Before(m.Deprecated) {
		return nil, fmt.Errorf("its shutdown is before its deprecation notice")
	}
	if !m.Deprecated.IsZero() {
		m.headers = append(m.headers, header{"Deprecation", []string{"@" + strconv.FormatInt(m.Deprecated.Unix(), 10)}})
	}
	if !m.Shutdown.IsZero() {
		m.headers = append(m.headers, header{"Sunset", []string{m.Shutdown.Format(http.TimeFormat)}})
	}
	return m, nil
}
