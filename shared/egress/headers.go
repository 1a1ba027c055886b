package egress

import (
	"net/http"
	"net/textproto"
	"strings"
)

// CopyRequestHeaders copies a client's headers for a provider. It omits hop-by-hop
// headers and those that Connection names, x-gateway-*, cookies, what proxies add about
// the client, AWS and CloudFront headers, metadata-service headers, Host and
// Content-Length (the request carries them itself) and Accept-Encoding (the gateway reads
// the response; a caller that does not may set it again).
//
// Authorization and x-api-key are copied: the caller replaces or deletes them
// when they hold the gateway's own key. Values are shared with src, not copied;
// a name that dst has already is replaced.
func CopyRequestHeaders(dst, src http.Header) {
	named := connectionNamed(src)
	for k, v := range src {
		k, ok := canonical(k)
		if !ok || len(v) == 0 || !Forwardable(k) || named != nil && contains(named, k) {
			continue
		}
		dst[k] = v[:len(v):len(v)]
	}
}

// CopyResponseHeaders copies a provider's headers for the client. It omits hop-by-hop
// headers and those that Connection names, x-gateway-*, Content-Length (the body may
// change), and headers that would affect the gateway's own host name: cookies, HSTS,
// alternative services. Content-Encoding is copied; a caller that decodes the body
// deletes it.
func CopyResponseHeaders(dst, src http.Header) {
	named := connectionNamed(src)
	for k, v := range src {
		k, ok := canonical(k)
		if !ok || len(v) == 0 || !responseHeader(k) || named != nil && contains(named, k) {
			continue
		}
		dst[k] = v[:len(v):len(v)]
	}
}

// Forwardable reports whether a request header of this name, in any case, may be sent to a
// provider. forward_headers and custom_headers may name only such headers.
func Forwardable(name string) bool {
	k, ok := canonical(name)
	if !ok || !requestHeader(k) {
		return false
	}
	dashed, ok := canonical(Dashed(k))
	return ok && requestHeader(dashed)
}

// Dashed returns a header name with every "_" replaced by "-". CGI and WSGI servers do not
// distinguish the two spellings.
func Dashed(name string) string { return strings.ReplaceAll(name, "_", "-") }

// DropLookalikes deletes those headers of the client from h that a server may read as one
// that the gateway sets: names that differ only in "_" and "-". client reports whether a
// name in h comes from the client, and later are headers that the gateway sets afterwards.
func DropLookalikes(h http.Header, client func(name string) bool, later ...string) {
	for odd := range h {
		if strings.IndexByte(odd, '_') < 0 || !client(odd) {
			continue
		}
		plain := Dashed(odd)
		for name := range h {
			if name != odd && strings.EqualFold(Dashed(name), plain) {
				delete(h, odd)
			}
		}
		for _, name := range later {
			if strings.EqualFold(Dashed(name), plain) {
				delete(h, odd)
			}
		}
	}
}

// ValidHeaderValue reports whether v may be the value of a header: it must have no control
// characters (CR, LF, NUL...) except tab.
func ValidHeaderValue(v string) bool {
	for i := 0; i < len(v); i++ {
		if c := v[i]; c < 0x20 && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// canonical returns the one spelling of a header name; false when it is not a token. A
// name that is canonical already is returned without work.
func canonical(k string) (string, bool) {
	if k == "" {
		return "", false
	}
	upper := true
	for i := 0; i < len(k); i++ {
		c := k[i]
		switch {
		case c >= 'A' && c <= 'Z':
			if !upper {
				return recanonical(k)
			}
		case c >= 'a' && c <= 'z':
			if upper {
				return recanonical(k)
			}
		case c >= '0' && c <= '9' || c == '-':
		default:
			return recanonical(k)
		}
		upper = c == '-'
	}
	return k, true
}

func recanonical(k string) (string, bool) {
	for i := 0; i < len(k); i++ {
		c := k[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return "", false
		}
	}
	return textproto.CanonicalMIMEHeaderKey(k), true
}

// hopByHop holds for headers that mean this connection only.
func hopByHop(k string) bool {
	switch k {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authorization", "Proxy-Authentication-Info", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}

// requestHeader reports whether the canonical name k goes to a provider. It looks at the
// first letter first, so that most headers need only one comparison.
func requestHeader(k string) bool {
	switch k[0] {
	case 'X':
		return !strings.HasPrefix(k, "X-Gateway-") && !strings.HasPrefix(k, "X-Forwarded-") &&
			(!strings.HasPrefix(k, "X-Amz") || modelOption(k)) && !strings.HasPrefix(k, "X-Aws-Ec2-Metadata-") &&
			!strings.HasPrefix(k, "X-Golambdaproxy-") && !strings.HasPrefix(k, "X-Envoy-") &&
			!otherX(k)
	case 'C':
		switch k {
		case "Cookie", "Cookie2", "Connection", "Content-Length", "Cf-Connecting-Ip", "Client-Ip", "Cdn-Loop":
			return false
		}
		return !strings.HasPrefix(k, "Cloudfront-")
	case 'A':
		return k != "Accept-Encoding"
	case 'E':
		return k != "Expect"
	case 'F':
		return k != "Forwarded" && k != "Fastly-Client-Ip"
	case 'H':
		return k != "Host" && k != "Http2-Settings"
	case 'M':
		return k != "Metadata" && k != "Metadata-Flavor"
	case 'K', 'P', 'U':
		return !hopByHop(k)
	case 'T':
		return k != "True-Client-Ip" && !hopByHop(k)
	case 'V':
		return k != "Via"
	}
	return true
}

// modelOption reports whether k is one of AWS's headers that control a model, such as
// which guardrail applies; the others are about the caller.
func modelOption(k string) bool {
	return strings.HasPrefix(k, "X-Amzn-Bedrock-") || strings.HasPrefix(k, "X-Amzn-Sagemaker-")
}

func otherX(k string) bool {
	switch k {
	case "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For",
		"X-Claude-Code-Session-Id", "X-Claude-Code-Agent-Id", "X-Claude-Code-Parent-Agent-Id", // information for the log
		"X-Forwarded", "X-Google-Metadata-Request", "X-Metadata-Token", "X-Original-Url", "X-Rewrite-Url":
		return true
	}
	return false
}

// responseHeader reports whether the canonical name k goes to the client.
func responseHeader(k string) bool {
	switch k[0] {
	case 'X':
		return !strings.HasPrefix(k, "X-Gateway-")
	case 'S':
		return k != "Set-Cookie" && k != "Set-Cookie2" && k != "Strict-Transport-Security"
	case 'A':
		return k != "Alt-Svc"
	case 'C':
		return k != "Content-Length" && k != "Connection" && k != "Clear-Site-Data"
	case 'N':
		return k != "Nel"
	case 'R':
		return k != "Report-To" && k != "Reporting-Endpoints"
	case 'P':
		return k != "Public-Key-Pins" && !hopByHop(k)
	case 'K', 'T', 'U', 'H':
		return !hopByHop(k)
	}
	return true
}

// connectionNamed returns the values of Connection if they name other headers; nil for
// the usual keep-alive and close.
func connectionNamed(h http.Header) []string {
	v := h["Connection"]
	for _, s := range v {
		if !strings.EqualFold(s, "keep-alive") && !strings.EqualFold(s, "close") {
			return v
		}
	}
	return nil
}

func contains(values []string, name string) bool {
	for _, v := range values {
		for v != "" {
			var one string
			one, v, _ = strings.Cut(v, ",")
			if strings.EqualFold(strings.TrimSpace(one), name) {
				return true
			}
		}
	}
	return false
}
