package target

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
func MaySay(tg *Target, message []byte) error {
	to := &tg.To
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
	err = tg.Means.Owners.Check(tg.Req.Base, tg.Req.Who.Scope, &to.Wall, ids)
	if f := fault.From(err); err != nil && f.Code == fault.NotFound {
		return fault.New(fault.InvalidRequest, f.Field, f.Message) // the message is refused, and the session goes on
	}
	return err
}

// KeepHandle notes whose the session is that a handle resumes. It is called before the
// client can know the handle.
func KeepHandle(tg *Target, handle string) error {
	if !keeps(tg) {
		return nil
	}
	if err := tg.Means.Owners.Own(tg.Req.Base, tg.Req.Who.Scope, tg.To.Wall.Places, tg.To.Saved.Slug, reference.Hash(handle)); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}
