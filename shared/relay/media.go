package relay

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
)

// Media that a client names by a web address is fetched for hosts that take bytes
// only (chat.Traits.NeedsMediaBytes), once per request whatever targets are
// tried. What cannot be had is a 400 that names the part, before anything is
// sent to the provider.

// Bounds of what is fetched for a request.
const (
	maxMedium   = 20 << 20 // bytes of one address
	maxMedia    = 50 << 20 // bytes of all of them
	maxMediaURL = 8 << 10  // length of an address; signed ones are long
	mediaTime   = 30 * time.Second
	mediaAtOnce = 8
	maxHops     = 3   // redirects of one address
	mostMedia   = 100 // addresses of a request
)

// media is what was fetched for a request, by address, failures too.
type media struct {
	got       map[string]*medium
	documents int64 // bytes of documents, for the bound of what they may cost
}

// medium is what one address gave: its type and content, or why it gave none.
type medium struct {
	mime    string
	data    string // base64, or text when plain
	text    bool
	size    int64
	why     string // why it cannot be used; "" when it can
	blocked bool   // by the gateway's own rules for addresses
	cut     bool   // broken off before it was known
	full    bool   // the gateway had no memory for it
}

// wantedMedium is a part that names a web address.
type wantedMedium struct {
	url string
	at  string // messages[1].content[0]
}

// withMediaBytes puts bytes in the place of the web addresses of r for the time
// of encode. r itself stays as it is, for targets that read addresses.
func (o *outbound) withMediaBytes(r *chat.Request, encode func() error) error {
	wanted := webMedia(r, &o.to.traits)
	if len(wanted) == 0 {
		return encode()
	}
	if err := o.fetchMedia(wanted); err != nil {
		return inWordsOf(o.rt.Client, err)
	}
	addressed := r.Messages
	r.Messages = o.inlined(addressed)
	defer func() { r.Messages = addressed }()
	return encode()
}

// webMedia lists the parts whose addresses the host does not read, in order.
func webMedia(r *chat.Request, t *chat.Traits) (wanted []wantedMedium) {
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
						wanted = append(wanted, wantedMedium{u, at})
					}
				}
			}
			if u := webAddress(p, t); u != "" {
				wanted = append(wanted, wantedMedium{u, at})
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
	if m.Plain {
		return at
	}
	return at + "[" + strconv.Itoa(p.At) + "]"
}

// webAddress is the address of a part that has to be fetched; "" for others.
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

// fetchMedia fetches the addresses that are not there yet. The error is that of
// the first part that failed.
func (o *outbound) fetchMedia(wanted []wantedMedium) error {
	if o.media.got == nil {
		o.media.got = make(map[string]*medium)
	}
	var missing []string
	for _, w := range wanted {
		if o.media.got[w.url] != nil {
			continue
		}
		if len(o.media.got) == mostMedia {
			return fault.Invalid(w.at, "%s is one address too many: this provider takes no addresses, and at most %d are fetched for a request", w.at, mostMedia)
		}
		m := new(medium)
		if o.rehearsing {
			m = imaginedMedium(w.url)
		} else {
			missing = append(missing, w.url)
		}
		o.media.got[w.url] = m
	}
	if len(missing) > 0 {
		o.fetchAll(missing)
	}
	for _, w := range wanted {
		if m := o.media.got[w.url]; m != nil && m.why != "" {
			code := fault.InvalidRequest
			if m.blocked {
				code = fault.BlockedHost
			}
			if m.full {
				return fault.New(fault.ServiceUnavailable, "", w.at+" could not be fetched: "+m.why)
			}
			return fault.New(code, w.at, w.at+" could not be fetched for this provider, which takes no web addresses: "+m.why)
		}
	}
	for _, w := range wanted {
		if o.media.got[w.url] == nil {
			return fault.New(fault.RequestTimeout, "", "The client went away while the media of its request were fetched")
		}
	}
	return nil
}

// fetchAll fetches addresses, a few at once. The first failure ends the others,
// and so does the client's going.
func (o *outbound) fetchAll(missing []string) {
	defer func(from time.Time) { o.waited += o.Now().Sub(from) }(o.Now())
	ctx, cancel := context.WithTimeout(egress.WithLaneOf(o.req.Context(), o.ctx), mediaTime)
	defer cancel()
	f := newMediaFetcher(o.Transport, o.Egress.WithoutTrusted(), o.lease)
	for _, m := range o.media.got {
		f.total.Add(m.size)
	}
	var running sync.WaitGroup
	slots := make(chan struct{}, mediaAtOnce)
	for _, address := range missing {
		m := o.media.got[address]
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if f.fetch(ctx, address, m); m.why != "" {
				cancel()
			}
		})
	}
	running.Wait()
	for _, address := range missing {
		switch m := o.media.got[address]; {
		case m.cut: // it says nothing of its address
			delete(o.media.got, address)
		case !strings.HasPrefix(m.mime, "image/"):
			o.media.documents += m.size
		}
	}
}

// imaginedMedium stands for an address in a rehearsal, which sends nothing.
func imaginedMedium(address string) *medium {
	m := &medium{mime: "image/png", data: base64.StdEncoding.EncodeToString([]byte("the bytes of " + address))}
	if u, err := url.Parse(address); err == nil && strings.HasSuffix(strings.ToLower(u.Path), ".pdf") {
		m.mime = "application/pdf"
	}
	return m
}

// inlined is a copy of messages in which content stands for what was fetched.
func (o *outbound) inlined(messages []chat.Message) []chat.Message {
	out := make([]chat.Message, len(messages))
	for i := range messages {
		out[i] = messages[i]
		out[i].Parts = o.inlinedParts(messages[i].Parts)
	}
	return out
}

func (o *outbound) inlinedParts(parts []chat.Part) []chat.Part {
	out := make([]chat.Part, len(parts))
	for i := range parts {
		p := parts[i]
		if p.Result != nil && len(p.Result.Parts) > 0 {
			result := *p.Result
			result.Parts = o.inlinedParts(result.Parts)
			p.Result = &result
		}
		if p.Media != nil && webAddress(&p, &o.to.traits) != "" {
			p = o.media.got[p.Media.URL].part(p)
		}
		out[i] = p
	}
	return out
}

// part is p with the content in the place of the address. The content decides
// what kind of part it is.
func (m *medium) part(p chat.Part) chat.Part {
	own := *p.Media
	own.URL, own.MIME, own.Data, own.Plain = "", m.mime, m.data, m.text
	p.Media = &own
	switch {
	case strings.HasPrefix(m.mime, "image/"):
		p.Kind = chat.Image
	case m.mime == "application/pdf", m.text:
		p.Kind = chat.Document
	}
	return p
}

// mediaInline gives the body of a host that speaks the client's dialect and takes
// bytes only: src, when it names no web address.
func (o *outbound) mediaInline(src []byte) ([]byte, error) {
	if o.rt.Client == nil || !o.to.traits.NeedsMediaBytes || !bytes.Contains(src, []byte("http")) {
		return src, nil
	}
	r, err := o.decode(src)
	if err != nil {
		return nil, err
	}
	if len(webMedia(r, &o.to.traits)) == 0 {
		return src, nil
	}
	var out []byte
	err = o.withMediaBytes(r, func() (err error) {
		out, err = chat.Translate(nil, o.rt.Client, o.rt.Client, r, &o.to.traits, &o.loss)
		return err
	})
	return out, err
}

// inWordsOf names the part of an error as client's own bodies do.
func inWordsOf(client chat.Dialect, err error) error {
	n, ok := client.(chat.Named)
	if !ok {
		return err
	}
	f := fault.From(err)
	own := n.ClientPath(f.Field)
	if own == f.Field {
		return err
	}
	g := *f
	g.Field, g.Message = own, strings.Replace(f.Message, f.Field, own, 1)
	return &g
}
