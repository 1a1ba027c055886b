package relay

import (
	"bytes"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay/admitted"
	"gateway/shared/relay/media"
)

// withMediaBytes calls encode while the web addresses of r are replaced by the fetched
// bytes. Afterwards r is as before, for targets that read addresses.
func withMediaBytes(c *call, r *chat.Request, encode func() error) error {
	wanted := media.In(r, &c.target.To.Traits)
	if len(wanted) == 0 {
		return encode()
	}
	if err := fetchMedia(c, wanted); err != nil {
		return inWordsOf(c.req.Route.Client, err)
	}
	addressed := r.Messages
	r.Messages = c.out.media.Inlined(addressed, &c.target.To.Traits)
	defer func() { r.Messages = addressed }()
	return encode()
}

// fetchMedia fetches the addresses that are not there yet. The error is that of
// the first part that failed.
func fetchMedia(c *call, wanted []media.Wanted) error {
	missing, err := c.out.media.Want(wanted, c.req.Rehearsing)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		from := c.relay.Now()
		f := media.NewFetcher(c.relay.Transport, c.relay.Egress.WithoutTrusted(), c.req.Lease)
		f.FetchAll(admitted.ClientContext(&c.req), &c.out.media, missing)
		c.log.Wait(c.relay.Now().Sub(from))
	}
	return c.out.media.Failure(wanted)
}

// mediaInline gives the body of a host that speaks the client's dialect and takes
// bytes only: src, when it names no web address.
func mediaInline(c *call, src []byte) ([]byte, error) {
	if c.req.Route.Client == nil || !c.target.To.Traits.NeedsMediaBytes || !bytes.Contains(src, []byte("http")) {
		return src, nil
	}
	r, err := c.target.Decode(src)
	if err != nil {
		return nil, err
	}
	if len(media.In(r, &c.target.To.Traits)) == 0 {
		return src, nil
	}
	var out []byte
	err = withMediaBytes(c, r, func() (err error) {
		out, err = chat.Translate(nil, c.req.Route.Client, c.req.Route.Client, r, &c.target.To.Traits, &c.target.Loss)
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
