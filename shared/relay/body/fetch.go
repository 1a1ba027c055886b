package body

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
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
)

// MediaFetcher gets media from the web: by GET only, without any credential or header of the caller,
// through the guarded transport, with every address of a redirect chain subject to the rules for
// hosts that callers name.
type MediaFetcher struct {
	transport http.RoundTripper
	policy    egress.Policy
	lease     *egress.Lease
	total     atomic.Int64 // bytes of all media of the request
}

func NewMediaFetcher(rt http.RoundTripper, p egress.Policy, l *egress.Lease) *MediaFetcher {
	return &MediaFetcher{transport: rt, policy: p, lease: l}
}

// fetch downloads the content of address. The reasons of failures do not contain the address: it
// may hold a signature.
func (f *MediaFetcher) fetch(ctx context.Context, address string) medium {
	if ctx.Err() != nil {
		return failed(ctx, ctx.Err())
	}
	resp, name, err := f.get(ctx, address)
	if err != nil {
		return failed(ctx, err)
	}
	defer resp.Body.Close()
	content, err := f.read(ctx, resp)
	if err != nil {
		return failed(ctx, err)
	}
	mime, why := typeOf(content, resp.Header.Get("Content-Type"), name)
	if why != "" {
		return medium{why: why}
	}
	if strings.HasPrefix(mime, "text/") || mime == "application/json" {
		return medium{mime: mime, size: int64(len(content)), text: true, data: string(content)}
	}
	return medium{mime: mime, size: int64(len(content)), data: base64.StdEncoding.EncodeToString(content)}
}

// Image gets an image of at most most bytes, in base64. Its errors are written for the caller.
func (f *MediaFetcher) Image(ctx context.Context, address string, most int64) (mime, data string, err error) {
	switch m := f.fetch(ctx, address); {
	case m.why != "":
		return "", "", reason(m.why)
	case m.cut:
		return "", "", reason("there was no time left to fetch it")
	case !strings.HasPrefix(m.mime, "image/"):
		return "", "", reason("it is not an image")
	case m.size > most:
		return "", "", reason("it is larger than " + strconv.FormatInt(most, 10) + " bytes")
	default:
		return m.mime, m.data, nil
	}
}

// reason is the reason for a failed download, written for the caller.
type reason string

func (e reason) Error() string { return string(e) }

// failed returns the reason for a failed download, without details of the network.
func failed(ctx context.Context, err error) medium {
	var why reason
	switch {
	case errors.As(err, &why):
		return medium{why: string(why)}
	case fault.Is(err, fault.ServiceUnavailable):
		return medium{why: "the gateway has no memory for another large body at present", full: true}
	case egress.IsBlocked(err):
		return medium{why: "its host must not be reached from the gateway", blocked: true}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return medium{why: "it did not arrive within " + patience.String()}
	case ctx.Err() != nil:
		return medium{cut: true}
	}
	return medium{why: "its host did not respond, or truncated the response"}
}

// get follows redirects to a response. name is the path of the final URL.
func (f *MediaFetcher) get(ctx context.Context, address string) (resp *http.Response, name string, err error) {
	for hop := 0; ; hop++ {
		u, err := f.address(address)
		if err != nil {
			return nil, "", err
		}
		req := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, Header: http.Header{
			"Accept": {"image/*, application/pdf, */*;q=0.5"}, "Accept-Encoding": {"identity"}, "User-Agent": {"gateway"},
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
			return nil, "", reason("its host responded with status " + strconv.Itoa(resp.StatusCode))
		}
		if hop == maxHops {
			return nil, "", reason("it redirects more than " + strconv.Itoa(maxHops) + " times")
		}
		next, err := u.Parse(resp.Header.Get("Location"))
		if err != nil || resp.Header.Get("Location") == "" {
			return nil, "", reason("it redirects to an invalid address")
		}
		if u.Scheme == "https" && next.Scheme == "http" {
			return nil, "", reason("it redirects from https to http")
		}
		address = next.String()
	}
}

// address checks one address of the chain. Its host must be one that callers may name; its
// path and query are free.
func (f *MediaFetcher) address(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, reason("its address is longer than " + strconv.Itoa(maxURL) + " bytes")
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	u, err := url.Parse(raw)
	if !ok || err != nil {
		return nil, reason("its address is malformed")
	}
	host := rest
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		host = rest[:i]
	}
	checked, err := f.policy.CheckURL(strings.ToLower(scheme)+"://"+host+"/", "")
	if egress.IsBlocked(err) {
		return nil, err
	}
	if err != nil {
		return nil, reason("its address is malformed")
	}
	return &url.URL{Scheme: checked.Scheme, Host: checked.Host, Opaque: u.Opaque, Path: u.Path, RawPath: u.RawPath, ForceQuery: u.ForceQuery, RawQuery: u.RawQuery}, nil
}

// read reads a body of up to maxMedium bytes, within the remainder of maxTotal.
func (f *MediaFetcher) read(ctx context.Context, resp *http.Response) ([]byte, error) {
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, reason("its host compresses it, although the request forbids it")
	}
	var content buffer.Buffer
	err := content.ReadAll(ctx, f.lease, &shared{resp.Body, &f.total}, resp.ContentLength, maxMedium)
	if errors.Is(err, buffer.ErrTooLarge) {
		err = reason("it is larger than " + strconv.Itoa(maxMedium>>20) + " MB")
	}
	if err == nil { // base64 needs a third more
		err = f.lease.Reserve(ctx, int64(len(content.B))/3*4)
	}
	return content.B, err
}

// shared is a reader limited by the total of all media of a request.
type shared struct {
	io.Reader
	total *atomic.Int64
}

func (s *shared) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if s.total.Add(int64(n)) > maxTotal {
		err = reason("the media of the request are larger than " + strconv.Itoa(maxTotal>>20) + " MB together")
	}
	return n, err
}

// officeTypes are documents that cannot be distinguished by their first bytes alone, by file
// extension.
var officeTypes = map[string]string{
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"doc":  "application/msword", "xls": "application/vnd.ms-excel",
}

// textTypes are texts that cannot be distinguished by content, by file extension.
var textTypes = map[string]string{"csv": "text/csv", "md": "text/markdown", "json": "application/json", "xml": "text/xml"}

// typeOf determines the type of a download by its bytes. The declared type and the file
// extension only distinguish formats with the same signature. why is set for a type that no
// model accepts.
func typeOf(content []byte, declared, name string) (mime, why string) {
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
		return "", "it is an SVG drawing, which no model accepts"
	case declared == "text/html", declared == "application/xhtml+xml":
		return "", "it is a web page, not a medium"
	case declared == "application/json", strings.HasPrefix(declared, "text/") && declared != "text/plain":
		return declared, ""
	case textTypes[end] != "":
		return textTypes[end], ""
	}
	return "text/plain", ""
}
