package provider

import (
	"encoding/json"
	"net/url"
	"os"
	"strconv"
	"strings"

	"gateway/shared/fault"
)

// Variables of the process's environment that an operator sets for identities of
// other clouds that Google trusts.
const (
	// googleIdentityVariable set to "true" lets saved providers use the identity in the file that
	// googleFileVariable names. It is off unless it is set.
	googleIdentityVariable = "GATEWAY_GOOGLE_IDENTITY"
	googleFileVariable     = "GOOGLE_APPLICATION_CREDENTIALS"
	// The pool that trusts the process's AWS identity, and the service account that this
	// identity impersonates.
	googleAudienceVariable = "GCP_WIF_AUDIENCE"
	googleAccountVariable  = "GCP_WIF_SERVICE_ACCOUNT_EMAIL"
	// Other addresses for Google's token service and for its service for credentials of
	// service accounts, such as private ones.
	googleSTSVariable = "GATEWAY_GOOGLE_STS_URL"
	googleIAMVariable = "GATEWAY_GOOGLE_IAM_URL"
)

const (
	googleSTS       = "https://sts.googleapis.com"
	googleIAM       = "https://iamcredentials.googleapis.com"
	tokenTypeAWS    = "urn:ietf:params:aws:token-type:aws4_request"
	tokenTypeAccess = "urn:ietf:params:oauth:token-type:access_token"
	maxSubjectToken = 64 << 10
	audienceField   = "vertex_workload_audience"
	emailField      = "vertex_workload_service_account"
)

// subjectTypes are the kinds of tokens besides AWS's that Google exchanges.
var subjectTypes = map[string]bool{
	"urn:ietf:params:oauth:token-type:jwt": true, "urn:ietf:params:oauth:token-type:id_token": true, "urn:ietf:params:oauth:token-type:saml2": true,
}

// externalAccount is an identity of another cloud or identity provider that Google trusts:
// a configuration file of workload identity federation, or the same from single fields.
type externalAccount struct {
	Type             string `json:"type"`
	Audience         string `json:"audience"`
	SubjectType      string `json:"subject_token_type"`
	TokenURL         string `json:"token_url"`
	ImpersonationURL string `json:"service_account_impersonation_url"`
	Impersonation    struct {
		Lifetime int64 `json:"token_lifetime_seconds"`
	} `json:"service_account_impersonation"`
	UserProject  string         `json:"workforce_pool_user_project"`
	ClientSecret string         `json:"client_secret"`
	Source       externalSource `json:"credential_source"`

	field    string // field of the credential or the environment, for errors
	operator bool   // the file belongs to the operator
}

// externalSource is the source of the external token: AWS if the environment is aws1,
// otherwise an address or a file.
type externalSource struct {
	Environment string            `json:"environment_id"`
	Verify      string            `json:"regional_cred_verification_url"`
	URL         string            `json:"url"`
	Headers     map[string]string `json:"headers"`
	File        string            `json:"file"`
	Executable  json.RawMessage   `json:"executable"`
	Certificate json.RawMessage   `json:"certificate"`
	Format      struct {
		Type  string `json:"type"`
		Field string `json:"subject_token_field_name"`
	} `json:"format"`
}

func (s *externalSource) aws() bool { return s.Environment != "" }

// external returns the identity of a target with vertex_auth_type workload: the
// credential's, or else the operator's.
func external(t *Target) (*externalAccount, error) {
	if text := t.Field(accountField); text != "" {
		return parseExternal(text, accountField, false)
	}
	if audience := t.Field(audienceField); audience != "" {
		return awsExternal(audience, t.Field(emailField), audienceField, emailField)
	}
	if audience := os.Getenv(googleAudienceVariable); audience != "" {
		return awsExternal(audience, os.Getenv(googleAccountVariable), "vertex_auth_type", "vertex_auth_type")
	}
	file := os.Getenv(googleFileVariable)
	switch {
	case file == "" || t.CallerKey:
		return nil, fault.Newf(fault.InvalidRequest, audienceField, "vertex_auth_type %s needs %s, or the configuration file of an external account in %s", googleWorkload, audienceField, accountField)
	case os.Getenv(googleIdentityVariable) != "true":
		return nil, fault.Newf(fault.InvalidRequest, "vertex_auth_type", "vertex_auth_type %s works with the gateway's own identity, which saved providers may use when the operator sets %s=true; otherwise send %s or %s", googleWorkload, googleIdentityVariable, audienceField, accountField)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.New(fault.ServiceUnavailable, "vertex_auth_type", "The file of the gateway's own Google identity cannot be read").WithCause(err)
	}
	return parseExternal(string(text), "vertex_auth_type", true)
}

// awsExternal is an AWS identity that the pool audience trusts.
func awsExternal(audience, email, audienceAt, emailAt string) (*externalAccount, error) {
	a := &externalAccount{Audience: audience, SubjectType: tokenTypeAWS, field: audienceAt, Source: externalSource{Environment: "aws1"}}
	if email != "" {
		if strings.Trim(email, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@._-") != "" || len(email) > 256 {
			return nil, fault.Invalid(emailAt, "%s must be the email address or the number of a service account", emailAt)
		}
		a.ImpersonationURL = googleIAM + "/v1/projects/-/serviceAccounts/" + email + ":generateAccessToken"
	}
	return a, a.check(audienceAt)
}

// parseExternal reads a configuration file. Credentials of tenants must not use files and
// programs of the machine.
func parseExternal(text, field string, operator bool) (*externalAccount, error) {
	a := &externalAccount{field: field, operator: operator}
	if json.Unmarshal([]byte(text), a) != nil {
		return nil, fault.Invalid(field, "%s must be the JSON configuration file of an external account", field)
	}
	if a.Type != "external_account" {
		return nil, fault.Invalid(field+".type", "%s.type must be external_account for vertex_auth_type %s", field, googleWorkload)
	}
	return a, a.check(field + ".audience")
}

// check rejects identities that cannot be exchanged here.
func (a *externalAccount) check(audienceAt string) error {
	s := &a.Source
	switch {
	case !strings.HasPrefix(a.Audience, "//iam.googleapis.com/") || len(a.Audience) > 512 || !printable(a.Audience):
		return fault.Invalid(audienceAt, "%s must name a provider of a pool, such as //iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/aws", audienceAt)
	case a.TokenURL != "" && !googleAddress(a.TokenURL, "sts", "/v1/token"):
		return fault.Invalid(a.field+".token_url", "%s.token_url must be https://sts.googleapis.com/v1/token", a.field)
	case a.ImpersonationURL != "" && !googleAddress(a.ImpersonationURL, "iamcredentials", ":generateAccessToken"):
		return fault.Invalid(a.field+".service_account_impersonation_url", "%s.service_account_impersonation_url must be https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/NAME:generateAccessToken", a.field)
	case a.Impersonation.Lifetime != 0 && (a.Impersonation.Lifetime < 600 || a.Impersonation.Lifetime > 43200):
		return fault.Invalid(a.field+".service_account_impersonation.token_lifetime_seconds", "%s.service_account_impersonation.token_lifetime_seconds must be between 600 and 43200", a.field)
	case a.ClientSecret != "":
		return fault.Invalid(a.field+".client_secret", "%s.client_secret is not supported: use a pool without one", a.field)
	case s.Executable != nil || s.Certificate != nil:
		return fault.Invalid(a.field+".credential_source", "%s.credential_source must be for AWS or have a url: programs and certificates are not supported", a.field)
	case s.aws():
		return a.checkAWS()
	case !subjectTypes[a.SubjectType]:
		return fault.Invalid(a.field+".subject_token_type", "%s.subject_token_type must be urn:ietf:params:oauth:token-type:jwt, id_token or saml2, or %s with the environment aws1", a.field, tokenTypeAWS)
	case s.Format.Type != "" && s.Format.Type != "text" && (s.Format.Type != "json" || s.Format.Field == ""):
		return fault.Invalid(a.field+".credential_source.format", "%s.credential_source.format must have the type text, or json with a subject_token_field_name", a.field)
	case s.File != "" && a.operator:
		return nil
	case s.File != "":
		return fault.Invalid(a.field+".credential_source.file", "%s.credential_source.file is not read: credentials cannot read the gateway's files; use a url", a.field)
	}
	return a.checkURL()
}

func (a *externalAccount) checkAWS() error {
	switch v := a.Source.Verify; {
	case a.Source.Environment != "aws1":
		return fault.Invalid(a.field+".credential_source.environment_id", "%s.credential_source.environment_id must be aws1", a.field)
	case a.SubjectType != tokenTypeAWS:
		return fault.Invalid(a.field+".subject_token_type", "%s.subject_token_type must be %s", a.field, tokenTypeAWS)
	case v != "" && v != "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15":
		return fault.Invalid(a.field+".credential_source.regional_cred_verification_url", "%s.credential_source.regional_cred_verification_url must be https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=%s", a.field, stsVersion)
	}
	return nil
}

func (a *externalAccount) checkURL() error {
	at := a.field + ".credential_source.url"
	u, err := url.Parse(a.Source.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(a.Source.URL) > 2048 {
		return fault.Invalid(at, "%s must be an https URL", at)
	}
	for name, value := range a.Source.Headers {
		if !headerName(name) || setHeader(map[string][]string{}, name, value) != nil {
			return fault.Invalid(a.field+".credential_source.headers", "%s.credential_source.headers must be names and values of headers", a.field)
		}
	}
	return nil
}

// googleAddress reports whether raw is an address of one of Google's services with the
// given path suffix. A token of another identity must not be sent anywhere else.
func googleAddress(raw, service, end string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !strings.HasSuffix(u.Path, end) || len(raw) > 1024 {
		return false
	}
	return u.Host == service+".googleapis.com" ||
		strings.HasPrefix(u.Host, service+".") && strings.HasSuffix(u.Host, ".rep.googleapis.com") ||
		strings.HasPrefix(u.Host, service+"-") && strings.HasSuffix(u.Host, ".p.googleapis.com")
}

// googleAt is the address of a service: the operator's if he set one, or else raw, or else
// standard.
func googleAt(variable, raw, standard, path string) string {
	if raw == "" {
		raw = standard + path
	}
	if own := os.Getenv(variable); own != "" {
		if u, err := url.Parse(raw); err == nil {
			return strings.TrimRight(own, "/") + u.EscapedPath()
		}
	}
	return raw
}

// lifetime is how long an impersonated token is to live, such as 3600s.
func (a *externalAccount) lifetime() string {
	if n := a.Impersonation.Lifetime; n > 0 {
		return strconv.FormatInt(n, 10) + "s"
	}
	return "3600s"
}
