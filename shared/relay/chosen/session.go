package chosen

import (
	"slices"
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/relay/kept"
)

// ofSession are fields of a session's messages that name what the session itself makes. Nobody has
// a row for that; what another workspace has a row for is refused.
var ofSession = []string{"response_id", "conversation", "conversation_id"}

// MaySay refuses a message of a session that names what another workspace has stored. The
// session outlives the request's own context.
func MaySay(o *Wall, message []byte) error {
	to := &o.Target.To
	if to.Saved == nil || !to.Wall.On || !reference.MayNameObjects(message) {
		return nil
	}
	ids, err := kept.IDsIn(message)
	if err != nil {
		return err
	}
	for i := range ids {
		n := &ids[i]
		n.Published = n.Published || slices.Contains(ofSession, n.Field[strings.LastIndexByte(n.Field, '.')+1:])
	}
	err = o.Target.Means.Owners.Check(o.Target.Req.Base, o.Target.Req.Who.Scope, &to.Wall, ids)
	if f := fault.From(err); err != nil && f.Code == fault.NotFound {
		return fault.New(fault.InvalidRequest, f.Field, f.Message) // the message is refused, and the session goes on
	}
	return err
}

// KeepHandle notes whose the session is that a handle resumes. It is called before the
// client can know the handle.
func KeepHandle(o *Wall, handle string) error {
	if !o.keeps() {
		return nil
	}
	if err := o.Target.Means.Owners.Own(o.Target.Req.Base, o.Target.Req.Who.Scope, o.Target.To.Wall.Places, o.Target.To.Saved.Slug, reference.Hash(handle)); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}
