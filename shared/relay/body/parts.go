package body

import (
	"context"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Limits of the media of a request.
const (
	maxMedium = 20 << 20 // bytes of one address
	maxTotal  = 50 << 20 // bytes of all of them
	maxURL    = 8 << 10  // length of an address; signed ones are long
	patience  = 30 * time.Second
	atOnce    = 8
	maxHops   = 3   // redirects of one address
	MaxMedia  = 100 // addresses of a request
)

// FetchedMedia holds the downloads of a request, by address, including failures.
type FetchedMedia struct {
	got       map[string]*medium
	Documents int64 // bytes of documents, for the bound of their cost
}

// medium is the result of one address: type and content, or the reason for the failure.
type medium struct {
	mime    string
	data    string // base64, or text when plain
	text    bool
	size    int64
	why     string // reason for the failure; "" for none
	blocked bool   // by the gateway's own rules for addresses
	cut     bool   // cancelled before it had a result
	full    bool   // the gateway had no memory for it
}

// MediaURLs is a part that names a web address.
type MediaURLs struct {
	url string
	at  string // messages[1].content[0]
}

// MediaIn returns the parts with addresses that the host does not read, in order.
func MediaIn(r *chat.Request, t *chat.Traits) (wanted []MediaURLs) {
	if !t.NeedsMediaBytes {
		return nil
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		for j := range m.Parts {
			p := &m.Parts[j]
			at := partPath(m, p)
			if p.Result != nil {
				for k := range p.Result.Parts {
					if u := webAddress(&p.Result.Parts[k], t); u != "" {
						wanted = append(wanted, MediaURLs{u, at})
					}
				}
			}
			if u := webAddress(p, t); u != "" {
				wanted = append(wanted, MediaURLs{u, at})
			}
		}
	}
	return wanted
}

func partPath(m *chat.Message, p *chat.Part) string {
	if m.At < 0 {
		return "system[" + strconv.Itoa(p.At) + "]"
	}
	at := "messages[" + strconv.Itoa(m.At) + "].content"
	if m.IsString {
		return at
	}
	return at + "[" + strconv.Itoa(p.At) + "]"
}

// webAddress returns the web address of a part that must be fetched; "" if it has none.
func webAddress(p *chat.Part, t *chat.Traits) string {
	if p.Media == nil || !isWeb(p.Media.URL) {
		return ""
	}
	if u, err := url.Parse(p.Media.URL); err == nil {
		host := strings.ToLower(u.Hostname())
		for _, own := range t.MediaHosts {
			if host == own || strings.HasSuffix(host, "."+own) {
				return ""
			}
		}
	}
	return p.Media.URL
}

func isWeb(s string) bool {
	return len(s) > 8 && (strings.EqualFold(s[:8], "https://") || strings.EqualFold(s[:7], "http://"))
}

// Require records the required addresses, and returns those that are not fetched yet. In a dry run,
// which sends nothing, each address gets placeholder content.
func (f *FetchedMedia) Require(wanted []MediaURLs, rehearsing bool) (missing []string, err error) {
	if f.got == nil {
		f.got = make(map[string]*medium)
	}
	for _, w := range wanted {
		if f.got[w.url] != nil {
			continue
		}
		if len(f.got) == MaxMedia {
			return nil, fault.Invalid(w.at, "%s is one address too many: this provider accepts no addresses, and at most %d are fetched for a request", w.at, MaxMedia)
		}
		m := new(medium)
		if rehearsing {
			m = imagined(w.url)
		} else {
			missing = append(missing, w.url)
		}
		f.got[w.url] = m
	}
	return missing, nil
}

// Failure returns that of the first part with a failed download; nil if all succeeded.
func (f *FetchedMedia) Failure(wanted []MediaURLs) error {
	for _, w := range wanted {
		if m := f.got[w.url]; m != nil && m.why != "" {
			code := fault.InvalidRequest
			if m.blocked {
				code = fault.BlockedHost
			}
			if m.full {
				return fault.New(fault.ServiceUnavailable, "", w.at+" could not be fetched: "+m.why)
			}
			return fault.New(code, w.at, w.at+" could not be fetched for this provider, which does not accept URLs: "+m.why)
		}
	}
	for _, w := range wanted {
		if f.got[w.url] == nil {
			return fault.New(fault.RequestTimeout, "", "The client disconnected while the media of its request were fetched")
		}
	}
	return nil
}

// FetchAll fetches the missing addresses of into, several concurrently. The first failure
// cancels the others, and so does the client's disconnect.
func (f *MediaFetcher) FetchAll(ctx context.Context, into *FetchedMedia, missing []string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, m := range into.got {
		f.total.Add(m.size)
	}
	var running sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, address := range missing {
		m := into.got[address]
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if *m = f.fetch(ctx, address); m.why != "" {
				cancel()
			}
		})
	}
	running.Wait()
	into.settle(missing)
}

// settle counts the documents among addresses that were fetched, and removes those that were
// canceled: they have no result.
func (f *FetchedMedia) settle(addresses []string) {
	for _, address := range addresses {
		switch m := f.got[address]; {
		case m.cut:
			delete(f.got, address)
		case !strings.HasPrefix(m.mime, "image/"):
			f.Documents += m.size
		}
	}
}

// imagined returns the placeholder for an address in a dry run, which sends nothing.
func imagined(address string) *medium {
	m := &medium{mime: "image/png", data: base64.StdEncoding.EncodeToString([]byte("the bytes of " + address))}
	if u, err := url.Parse(address); err == nil && strings.HasSuffix(strings.ToLower(u.Path), ".pdf") {
		m.mime = "application/pdf"
	}
	return m
}

// Inlined returns a copy of messages with the fetched content instead of addresses.
func (f *FetchedMedia) Inlined(messages []chat.Message, t *chat.Traits) []chat.Message {
	out := make([]chat.Message, len(messages))
	for i := range messages {
		out[i] = messages[i].WithParts(f.inlinedParts(messages[i].Parts, t))
	}
	return out
}

func (f *FetchedMedia) inlinedParts(parts []chat.Part, t *chat.Traits) []chat.Part {
	out := make([]chat.Part, len(parts))
	for i := range parts {
		p := parts[i]
		if p.Result != nil && len(p.Result.Parts) > 0 {
			p = p.WithResult(f.inlinedParts(p.Result.Parts, t))
		}
		if p.Media != nil && webAddress(&p, t) != "" {
			p = f.got[p.Media.URL].part(p)
		}
		out[i] = p
	}
	return out
}

// part returns p with the content instead of the address. The content determines the kind of
// part.
func (m *medium) part(p chat.Part) chat.Part {
	switch {
	case strings.HasPrefix(m.mime, "image/"):
		return p.WithMedia(chat.Image, m.mime, m.data, false)
	case m.mime == "application/pdf", m.text:
		return p.WithMedia(chat.Document, m.mime, m.data, m.text)
	}
	return p.WithMedia(p.Kind, m.mime, m.data, m.text)
}
