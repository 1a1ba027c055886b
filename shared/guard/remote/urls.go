package remote

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/shared/guard/judge"
)

// Limits of the addresses of one response.
const (
	maxURLs   = 50
	atOnce    = 8
	maxHops   = 5
	linkTime  = 3 * time.Second // for each address
	linkTotal = 15 * time.Second
)

var link = regexp.MustCompile(`https?://[^\s,"'{}\[\]]+`)

// links returns the distinct addresses in a text.
func links(text string) []string {
	var out []string
	for _, u := range link.FindAllString(text, -1) {
		for {
			before := u
			u = strings.TrimRight(u, ".;:!?<>`*")
			if strings.HasSuffix(u, ")") && strings.Count(u, ")") > strings.Count(u, "(") {
				u = u[:len(u)-1] // it closes a bracket before the address
			}
			if u == before {
				break
			}
		}
		if !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out
}

type urlsData struct {
	Verdict     bool     `json:"verdict"`
	Not         bool     `json:"not"`
	Explanation string   `json:"explanation"`
	Valid       []string `json:"validUrls"`
	Invalid     []string `json:"invalidUrls"`
}

// LookUp returns the addresses of a host name.
type LookUp func(ctx context.Context, host string) ([]string, error)

// validURLs returns the check of addresses: each address in a response must respond to HEAD
// with 2xx, or its host name must exist. A response without addresses fails, even with not.
func validURLs(lookUp LookUp) judge.Maker {
	return func(p map[string]json.RawMessage) judge.Func {
		not, onlyDNS := judge.Get(p, "not", false), judge.Get(p, "onlyDNS", false)
		return func(ctx context.Context, s *judge.Subject) judge.Verdict {
			all := links(s.Text())
			d := &urlsData{Not: not, Valid: []string{}, Invalid: []string{}}
			switch {
			case len(all) == 0:
				d.Explanation = "The response has no addresses"
				return judge.Verdict{Data: d}
			case len(all) > maxURLs:
				return judge.Failed("Error", "The response has more than 50 addresses")
			case s.Public == nil:
				return judge.Failed("Error", "No host can be called")
			}
			try := func(ctx context.Context, u *url.URL) bool { return responds(ctx, s.Public, u) }
			if onlyDNS {
				try = func(ctx context.Context, u *url.URL) bool {
					found, err := lookUp(ctx, u.Hostname())
					return err == nil && len(found) > 0
				}
			}
			ctx, cancel := context.WithTimeout(ctx, linkTotal)
			defer cancel()
			for i, ok := range tryAll(ctx, all, try) {
				if ok {
					d.Valid = append(d.Valid, all[i])
				} else {
					d.Invalid = append(d.Invalid, all[i])
				}
			}
			d.Verdict, d.Explanation = (len(d.Invalid) == 0) != not, "All addresses are valid"
			if len(d.Invalid) > 0 {
				d.Explanation = "Some addresses are not valid"
			}
			return judge.Verdict{Pass: d.Verdict, Data: d}
		}
	}
}

func tryAll(ctx context.Context, all []string, try func(context.Context, *url.URL) bool) []bool {
	out := make([]bool, len(all))
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, one := range all {
		u, err := url.Parse(one)
		if err != nil || u.Hostname() == "" {
			continue
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, linkTime)
			defer cancel()
			out[i] = try(ctx, u)
		})
	}
	wait.Wait()
	return out
}

// responds reports whether an address responds with 2xx. An http address is called over TLS if
// plain connections are not allowed.
func responds(ctx context.Context, public *http.Client, u *url.URL) bool {
	c := *public
	c.CheckRedirect = func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxHops {
			return http.ErrUseLastResponse
		}
		return nil
	}
	request := func(u *url.URL) (int, bool) {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
		if err != nil {
			return 0, false
		}
		req.URL.User = nil
		resp, err := c.Do(req)
		if err != nil {
			return 0, false
		}
		_ = resp.Body.Close()
		return resp.StatusCode, true
	}
	status, ok := request(u)
	if !ok && u.Scheme == "http" && ctx.Err() == nil {
		secure := *u
		secure.Scheme = "https"
		status, _ = request(&secure)
	}
	return status >= 200 && status < 300
}
