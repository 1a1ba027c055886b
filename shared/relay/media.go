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
func (o *outbound) withMediaBytes(r *chat.Request, encode func() error) error {
	wanted := media.In(r, &o.To.Traits)
	if len(wanted) == 0 {
		return encode()
	}
	if err := o.fetchMedia(wanted); err != nil {
		return inWordsOf(o.Route.Client, err)
	}
	addressed := r.Messages
	r.Messages = o.media.Inlined(addressed, &o.To.Traits)
	defer func() { r.Messages = addressed }()
	return encode()
}

// fetchMedia fetches the addresses that are not there yet. The error is that of
// the first part that failed.
func (o *outbound) fetchMedia(wanted []media.Wanted) error {
	missing, err := o.media.Want(wanted, o.Rehearsing)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		from := o.Now()
		f := media.NewFetcher(o.Transport, o.Egress.WithoutTrusted(), o.Lease)
		f.FetchAll(admitted.ClientContext(&o.Request), &o.media, missing)
		o.waited += o.Now().Sub(from)
	}
	return o.media.Failure(wanted)
}

// mediaInline gives the body of a host that speaks the client's dialect and takes
// bytes only: src, when it names no web address.
func (o *outbound) mediaInline(src []byte) ([]byte, error) {
	if o.Route.Client == nil || !o.To.Traits.NeedsMediaBytes || !bytes.Contains(src, []byte("http")) {
		return src, nil
	}
	r, err := o.Decode(src)
	if err != nil {
		return nil, err
	}
	if len(media.In(r, &o.To.Traits)) == 0 {
		return src, nil
	}
	var out []byte
	err = o.withMediaBytes(r, func() (err error) {
		out, err = chat.Translate(nil, o.Route.Client, o.Route.Client, r, &o.To.Traits, &o.Loss)
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
