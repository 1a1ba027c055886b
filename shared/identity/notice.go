package identity

import (
	"maps"

	"gateway/shared/notice"
	"gateway/shared/resource"
)

// Notice returns an event about a key for admins of the organisation, the key's owner and its
// alert_emails. what continues the sentence after the key's name: "was rotated".
func (k *Key) Notice(rec *resource.Record, kind, what string, more map[string]string) notice.Event {
	data := map[string]string{"api_key_id": rec.ID, "api_key_name": rec.Name, "api_key_type": string(k.Type), "user_id": k.UserID}
	maps.Copy(data, more)
	return notice.Event{
		Type: kind, Org: rec.Scope.Org, Workspace: rec.Scope.Workspace, Data: data,
		Summary: "The API key \"" + rec.Name + "\" " + what, Audience: notice.Audience{Admins: true, Key: rec.ID},
	}
}
