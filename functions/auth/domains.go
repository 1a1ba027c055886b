package auth

import (
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/signin/sso"
)

const domainsPath = "/auth/domains"

type domain = admin.Item[sso.Domain]

// describeDomains describes the email domains of users who may sign in.
func (f *family) describeDomains() *admin.Collection[sso.Domain] {
	record := func(value func(d *sso.Domain) string) func(*admin.Call, domain) any {
		return func(_ *admin.Call, it domain) any { return value(it.Form) }
	}
	return &admin.Collection[sso.Domain]{
		Kind: sso.KindDomain, Object: "sso-domain", Path: domainsPath, Param: "domainId", UUIDOnly: true,
		Scopes: scopes, Resource: "sso_domains", Where: admin.InOrganisation, ReadRole: admin.Admin, WriteRole: admin.Admin,
		Fields: []admin.Field{
			{Name: "domain", Required: true, Fixed: true, Example: "example.com", Doc: "Domain of email addresses, such as example.com."},
			{Name: "allow_subdomains", In: "allow_subdomains", Absent: false, Default: false, Doc: "Whether addresses of subdomains may sign in too; only for registrable domains."},
		},
		Shown: []admin.Shown[sso.Domain]{
			{Field: admin.Field{Name: "verified_at", Type: admin.Timestamp, Doc: "null: not verified, so its users cannot sign in yet."}, Value: func(_ *admin.Call, it domain) any { return admin.OrNull(it.Form.VerifiedAt) }},
			{Field: admin.Field{Name: "txt_name", Type: admin.String, Required: true, Doc: "Name of the TXT record that proves ownership of the domain."}, Value: record(func(d *sso.Domain) string { name, _ := d.Record(); return name })},
			{Field: admin.Field{Name: "txt_value", Type: admin.String, Required: true, Doc: "Value of the TXT record."}, Value: record(func(d *sso.Domain) string { _, value := d.Record(); return value })},
		},
		New:    func(*admin.Call) sso.Domain { return sso.Domain{Challenge: sso.NewChallenge()} },
		Before: checkDomain,
		Retire: func(_ *admin.Call, tx *resource.Tx, it domain) error { sso.Unclaim(tx, it.Form); return nil },
		Adjust: func(action string, r *admin.Route) {
			recentWrites(action, r)
			if action == "create" {
				create := r.Do
				r.Do = func(c *admin.Call) (any, error) {
					made, err := create(c)
					if f := fault.From(err); err != nil && f.Code == fault.Conflict && f.Field == "slug" {
						err = fault.New(fault.Conflict, "domain", "is there already")
					}
					return made, err
				}
			}
		},
		Created: &admin.Reply{Members: []string{"id", "txt_name", "txt_value"}},
	}
}

func checkDomain(_ *admin.Call, _ *resource.Tx, ch *admin.Change[sso.Domain]) error {
	var bad []fault.Detail
	name, ok := sso.Spelled(ch.Form.Domain)
	if !ok {
		bad = append(bad, fault.Detail{Field: "domain", Message: "must be a domain that somebody can own, such as example.com"})
	}
	if ok && ch.Form.Subdomains && !sso.Root(name) {
		bad = append(bad, fault.Detail{Field: "allow_subdomains", Message: "is for root domains, such as example.com"})
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	ch.Form.Domain, ch.Rec.Name, ch.Rec.Slug = name, name, sso.Slug(name)
	return nil
}

// verifyDomain looks up the TXT record.
func (f *family) verifyDomain() []admin.Route {
	return f.domains.Below(admin.Route{
		Method: "POST", Path: domainsPath + "/{domainId}/verify", Name: "verifyDomain", Action: audit.Update, Recent: true, Errors: []int{409},
		Doc: "Verify the TXT record. Afterwards users with addresses of the domain may sign in. A domain can belong to one organization only.", Answer: admin.Nothing,
		Do: f.domains.At("update", func(c *admin.Call) (any, error) {
			it, err := f.domains.Find(c)
			if err != nil {
				return nil, err
			}
			if err := it.Form.Shown(c.Context, f.LookUpTXT); err != nil {
				return nil, err
			}
			err = c.Change(func(tx *resource.Tx) error {
				it, err := f.domains.FindIn(c, tx)
				if err != nil {
					return err
				}
				it.Form.VerifiedAt = admin.FormatTime(tx.Now().Truncate(time.Second)).(string)
				if err := sso.Claim(tx, it.Form); err != nil {
					return err
				}
				return f.domains.Save(c, tx, it)
			})
			if f := fault.From(err); err != nil && f.Code == fault.Conflict && f.Field == "key" {
				err = fault.New(fault.Conflict, "domain", "is another organisation's")
			}
			return nil, err
		}),
	})
}
