package relay

import (
	"bytes"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/record"
	"gateway/shared/relay/target"
)

// withMediaBytes calls encode while the web addresses of r are replaced by the fetched
// bytes. Afterwards r is as before, for targets that read addresses.
func withMediaBytes(relay *Relay, tg *target.Target, up *outbound, log *record.Log, r *chat.Request, encode func() error) error {
	wanted := body.MediaIn(r, &tg.To.Traits)
	if len(wanted) == 0 {
		return encode()
	}
	if err := fetchMedia(relay, tg.Req, up, log, wanted); err != nil {
		return inWordsOf(tg.Req.Route.Client, err)
	}
	addressed := r.Messages
	r.Messages = up.media.Inlined(addressed, &tg.To.Traits)
	defer func() { r.Messages = addressed }()
	return encode()
}

// fetchMedia fetches the addresses that are not there yet. The error is that of
// the first part that failed.
func fetchMedia(r *Relay, q *admission.Request, up *outbound, log *record.Log, wanted []body.MediaURLs) error {
	missing, err := up.media.Want(wanted, q.Rehearsing)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		from := r.Now()
		f := body.NewMediaFetcher(r.Transport, r.Egress.WithoutTrusted(), q.Lease)
		f.FetchAll(admission.ClientContext(q), &up.media, missing)
		log.Wait(r.Now().Sub(from))
	}
	return up.media.Failure(wanted)
}

// mediaInline returns the body for a host with the client's dialect that accepts only bytes:
// src, if it contains no web address.
func mediaInline(relay *Relay, tg *target.Target, up *outbound, log *record.Log, src []byte) ([]byte, error) {
	if tg.Req.Route.Client == nil || !tg.To.Traits.NeedsMediaBytes || !bytes.Contains(src, []byte("http")) {
		return src, nil
	}
	r, err := tg.Decode(src)
	if err != nil {
		return nil, err
	}
	if len(body.MediaIn(r, &tg.To.Traits)) == 0 {
		return src, nil
	}
	var out []byte
	err = withMediaBytes(relay, tg, up, log, r, func() (err error) {
		out, err = chat.Translate(nil, tg.Req.Route.Client, tg.Req.Route.Client, r, &tg.To.Traits, &tg.Loss)
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
