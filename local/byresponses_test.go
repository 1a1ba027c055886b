package main

import (
	"net/http"
	"net/url"
)

// diverted sends what is meant for a host of the internet to the mock provider.
type diverted struct {
	http.RoundTripper
	to *url.URL
}

// divert has it send everything there.
func (r *running) divert() {
	r.t.Helper()
	to, err := url.Parse(r.g.mock.URL())
	if err != nil {
		r.t.Fatal(err)
	}
	r.g.relay.Transport = &diverted{r.g.relay.Transport, to}
}

func (d *diverted) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = d.to.Scheme, d.to.Host, d.to.Host
	return d.RoundTripper.RoundTrip(req)
}
