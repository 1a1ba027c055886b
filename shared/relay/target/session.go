package target

import (
	"slices"
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/relay/ownership"
)

// ofSession are fields of a session's messages that name objects that the session itself
// creates. They have no ownership row; an id with another workspace's row is rejected.
var ofSession = []string{"response_id", "conversation", "conversation_id"}

// MaySay rejects a message of a session that names an object that another workspace has stored.
// The session outlives the request's own context.
func MaySay(tg *Target, message []byte) error {
	to := &tg.To
	if to.Saved == nil || !to.Wall.On || !reference.MayNameObjects(message) {
		return nil
	}
	ids, err := ownership.IDsIn(message)
	if err != nil {
		return err
	}
	for i := range ids {
		n := &ids[i]
		n.Published = n.Published || slices.Contains(ofSession, n.Field[strings.LastIndexByte(n.Field, '.')+1:])
	}
	err = tg.Means.Owners.Check(tg.Req.Base, tg.Req.Who.Scope, &to.Wall, ids)
	if f := fault.From(err); err != nil && f.Code == fault.NotFound {
		return fault.New(fault.InvalidRequest, f.Field, f.Message) // the message is rejected, and the session continues
	}
	return err
}

// KeepHandle records the owner of the session that a handle resumes. It is called before the
// client has the handle.
func KeepHandle(tg *Target, handle string) error {
	if !keeps(tg) {
		return nil
	}
	if err := tg.Means.Owners.Own(tg.Req.Base, tg.Req.Who.Scope, tg.To.Wall.Places, tg.To.Saved.Slug, reference.Hash(handle)); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}
