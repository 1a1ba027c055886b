package admin

import (
	"encoding/json"

	"gateway/shared/resource"
	"gateway/shared/seal/hostpin"
)

// SecretReferences returns what the caller may do with secret references: read them, as
// their routes require it, or only map them.
func (c *Call) SecretReferences() hostpin.Caller {
	reads := c.Caller.OfOrganisation() && c.Caller.AtLeast(Admin) && c.Caller.HasAny([]string{hostpin.ScopeRead})
	return hostpin.Caller{Reads: reads, Uses: reads || c.Caller.HasAny([]string{hostpin.ScopeUse})}
}

// checkAddresses returns a 400 if an update moves an Address while secrets of the record
// stay as they are. It compares the records as they are stored before and after the update.
func checkAddresses(fields []Field, in Values, old, rec *resource.Record) error {
	var ch hostpin.Change
	for i := range fields {
		if f := &fields[i]; f.Secret && !in.Has(f.Name) && rec.HasSecret(f.Name) {
			ch.Retained = append(ch.Retained, f.Name)
		}
	}
	if len(ch.Retained) == 0 {
		return nil
	}
	var was, now map[string]any
	if err := json.Unmarshal(old.Body, &was); err != nil {
		return err
	}
	if err := json.Unmarshal(rec.Body, &now); err != nil {
		return err
	}
	for i := range fields {
		if f := &fields[i]; f.Address {
			ch.Addresses = append(ch.Addresses, hostpin.Address{Field: f.Name, Was: textOfMember(was[f.member()]), Now: textOfMember(now[f.member()]), Open: true})
		}
	}
	return ch.Check()
}
