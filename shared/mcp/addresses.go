package mcp

import "gateway/shared/seal/hostpin"

// Addresses returns the hosts that receive secrets of the integration, before and after a
// change. was is the zero Integration for a new one. User tokens are not among these secrets:
// each is bound to the address for which it was issued.
func (i *Integration) Addresses(was *Integration) []hostpin.Address {
	const oauth, external, jwt = configPrefix + confOAuth, configPrefix + confExternal, configPrefix + confJWT
	toServer := []string{oauth}
	for _, name := range []string{confHeaders, confCustom, confPassthrough, confPassOne} {
		toServer = append(toServer, configPrefix+name)
	}
	before, after := was.addressFields(), i.addressFields()
	of := func(field string, secrets ...string) hostpin.Address {
		return hostpin.Address{Field: field, Was: before[field], Now: after[field], Open: true, Secrets: secrets}
	}
	return []hostpin.Address{
		of("url", toServer...),
		of(oauth+".issuer", oauth), of(oauth+".authorization_endpoint", oauth), of(oauth+".token_endpoint", oauth),
		of(external+".authorization_endpoint", external), of(external+".token_endpoint", external),
		of(jwt+".introspectEndpoint", jwt),
	}
}

// addressFields returns the values of the fields that Addresses names. If the configuration
// cannot be decoded, it returns only the URL: Check rejects such a configuration.
func (i *Integration) addressFields() map[string]string {
	out := map[string]string{"url": i.URL}
	c, err := i.Configuration(nil)
	if err != nil {
		return out
	}
	if o := c.OAuth; o != nil {
		const at = configPrefix + confOAuth
		out[at+".issuer"], out[at+".authorization_endpoint"], out[at+".token_endpoint"] = o.Issuer, o.AuthorizationEndpoint, o.TokenEndpoint
	}
	if e := c.External; e != nil {
		const at = configPrefix + confExternal
		out[at+".authorization_endpoint"], out[at+".token_endpoint"] = e.AuthorizationEndpoint, e.TokenEndpoint
	}
	if j := c.JWT; j != nil {
		out[configPrefix+confJWT+".introspectEndpoint"] = j.IntrospectEndpoint
	}
	return out
}
