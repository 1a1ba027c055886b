package relay

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/relay/pooled"
)

// mediaFetcher gets media from the web: by GET only, without any credential or
// header of the caller, through the guarded transport, with every address of a
// chain of redirects held to the rules for hosts that callers name.
type mediaFetcher struct {
	transport http.RoundTripper
	policy    egress.Policy
	lease     *egress.Lease
	total     atomic.Int64 // bytes of all media of the request
}

func newMediaFetcher(rt http.RoundTripper, p egress.Policy, l *egress.Lease) *mediaFetcher {
	return &mediaFetcher{transport: rt, policy: p, lease: l}
}

// fetch fills m from address. The reasons of failures name no address: it may
// hold a signature.
func (f *mediaFetcher) fetch(ctx context.Context, address string, m *medium) {
	if ctx.Err() != nil {
		f.failed(ctx, m, ctx.Err())
		return
	}
	resp, name, err := f.get(ctx, address)
	if err != nil {
		f.failed(ctx, m, err)
		return
	}
	defer resp.Body.Close()
	content, err := f.read(ctx, resp)
	if err != nil {
		f.failed(ctx, m, err)
		return
	}
	mime, why := mediaType(content, resp.Header.Get("Content-Type"), name)
	if why != "" {
		m.why = why
		return
	}
	m.mime, m.size = mime, int64(len(content))
	if m.text = strings.HasPrefix(mime, "text/") || mime == "application/json"; m.text {
		m.data = string(content)
		return
	}
	m.data = base64.StdEncoding.EncodeToString(content)
}

// mediaError says why an address gives nothing, in words for the caller.
type mediaError string

func (e mediaError) Error() string { return string(e) }

// failed notes why nothing came. What the caller may not learn of a network
// stays out of it.
func (f *mediaFetcher) failed(ctx context.Context, m *medium, err error) {
	var why mediaError
	switch {
	case errors.As(err, &why):
		m.why = string(why)
	case fault.Is(err, fault.ServiceUnavailable):
		m.why, m.full = "the gateway holds as many large bodies as its memory allows", true
	case egress.Refused(err):
		m.why, m.blocked = "its host must not be reached from the gateway", true
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		m.why = "it did not arrive within " + mediaTime.String()
	case ctx.Err() != nil:
		m.cut = true
	default:
		m.why = "its host did not answer, or broke off"
	}
}

// get follows redirects to a good answer. name is the path that it came from.
func (f *mediaFetcher) get(ctx context.Context, address string) (resp *http.Response, name string, err error) {
	for hop := 0; ; hop++ {
		u, err := f.address(address)
		if err != nil {
			return nil, "", err
		}
		req := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, Header: http.Header{
			"Accept": {"image/*, application/pdf, */*;q=0.5"}, "Accept-Encoding": {"identity"}, "User-Agent": userAgent,
		}}).WithContext(ctx)
		resp, err := f.transport.RoundTrip(req)
		if err != nil {
			return nil, "", err
		}
		if resp.StatusCode == http.StatusOK {
			return resp, u.Path, nil
		}
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		default:
			return nil, "", mediaError("its host answered with status " + strconv.Itoa(resp.StatusCode))
		}
		if hop == maxHops {
			return nil, "", mediaError("it redirects more than " + strconv.Itoa(maxHops) + " times")
		}
		next, err := u.Parse(resp.Header.Get("Location"))
		if err != nil || resp.Header.Get("Location") == "" {
			return nil, "", mediaError("it redirects to what is no address")
		}
		if u.Scheme == "https" && next.Scheme == "http" {
			return nil, "", mediaError("it redirects from https to http")
		}
		address = next.String()
	}
}

// address checks one address of the chain: its host as any host that a caller
// names; its path and query may be what they like.
func (f *mediaFetcher) address(raw string) (*url.URL, error) {
	if len(raw) > maxMediaURL {
		return nil, mediaError("its address is longer than " + strconv.Itoa(maxMediaURL) + " bytes")
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	u, err := url.Parse(raw)
	if !ok || err != nil {
		return nil, mediaError("its address is malformed")
	}
	host := rest
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		host = rest[:i]
	}
	checked, err := f.policy.CheckURL(strings.ToLower(scheme)+"://"+host+"/", "")
	if egress.Refused(err) {
		return nil, err
	}
	if err != nil {
		return nil, mediaError("its address is malformed")
	}
	u.Scheme, u.Host, u.User, u.Fragment, u.RawFragment = checked.Scheme, checked.Host, nil, "", ""
	return u, nil
}

// read takes a body of up to maxMedium bytes, and of what is left of maxMedia.
func (f *mediaFetcher) read(ctx context.Context, resp *http.Response) ([]byte, error) {
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, mediaError("its host compresses it, though it was asked not to")
	}
	var content pooled.Buffer
	err := content.ReadAll(ctx, f.lease, &shared{resp.Body, &f.total}, resp.ContentLength, maxMedium)
	if errors.Is(err, pooled.ErrTooLarge) {
		err = mediaError("it is larger than " + strconv.Itoa(maxMedium>>20) + " MB")
	}
	if err == nil { // base64 takes a third more
		err = f.lease.Take(ctx, int64(len(content.B))/3*4)
	}
	return content.B, err
}

// shared is read as far as the bound of all media of a request goes.
type shared struct {
	io.Reader
	total *atomic.Int64
}

func (s *shared) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if s.total.Add(int64(n)) > maxMedia {
		err = mediaError("the media of the request are larger than " + strconv.Itoa(maxMedia>>20) + " MB together")
	}
	return n, err
}

// officeTypes are documents that cannot be told from their first bytes alone, by
// the ends of their names.
var officeTypes = map[string]string{
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"doc":  "application/msword", "xls": "application/vnd.ms-excel",
}

// textTypes are texts that look alike, by the ends of their names.
var textTypes = map[string]string{"csv": "text/csv", "md": "text/markdown", "json": "application/json", "xml": "text/xml"}

// mediaType tells the type of what was fetched by its bytes. What its host
// declares, and the end of its name, only tell types apart that look alike. why
// is set for what no model takes.
func mediaType(content []byte, declared, name string) (mime, why string) {
	declared, _, _ = strings.Cut(strings.ToLower(declared), ";")
	declared = strings.TrimSpace(declared)
	end := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	seen, _, _ := strings.Cut(http.DetectContentType(content), ";")
	switch {
	case len(content) == 0:
		return "", "it is empty"
	case seen == "text/html":
		return "", "it is a web page, not a medium"
	case seen == "image/x-icon", seen == "image/vnd.microsoft.icon":
		return "", "its type is not one that models take"
	case seen == "application/ogg":
		return "audio/ogg", ""
	case seen == "audio/wave":
		return "audio/wav", ""
	case strings.HasPrefix(seen, "image/"), strings.HasPrefix(seen, "audio/"), strings.HasPrefix(seen, "video/"), seen == "application/pdf":
		return seen, ""
	case strings.HasPrefix(seen, "text/"):
		return textType(content, declared, end)
	case seen == "application/zip", len(content) > 8 && string(content[:8]) == "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
		for _, mime := range officeTypes {
			if declared == mime {
				return mime, ""
			}
		}
		if mime := officeTypes[end]; mime != "" {
			return mime, ""
		}
	case len(content) > 12 && string(content[4:8]) == "ftyp":
		if strings.HasPrefix(declared, "image/") || strings.HasPrefix(declared, "video/") || strings.HasPrefix(declared, "audio/") {
			return declared, "" // HEIC, AVIF, QuickTime, M4A: brands of one container
		}
	case len(content) > 2 && content[0] == 0xff && content[1]&0xe0 == 0xe0 && strings.HasPrefix(declared, "audio/"):
		return declared, "" // MP3 and AAC without a header
	}
	return "", "its bytes are not of a type that models take"
}

func textType(content []byte, declared, end string) (mime, why string) {
	switch {
	case !utf8.Valid(content):
		return "", "it is text that is not UTF-8"
	case declared == "image/svg+xml", end == "svg":
		return "", "it is an SVG drawing, which no model takes"
	case declared == "text/html", declared == "application/xhtml+xml":
		return "", "it is a web page, not a medium"
	case declared == "application/json", strings.HasPrefix(declared, "text/") && declared != "text/plain":
		return declared, ""
	case textTypes[end] != "":
		return textTypes[end], ""
	}
	return "text/plain", ""
}
