package kmstest

import "regexp"

type metadata struct {
	KeyId, Arn string
	Enabled    bool
	KeyState   string
}

func described(arn string) any {
	return map[string]any{"KeyMetadata": metadata{KeyId: arn[len(arnPrefix):], Arn: arn, Enabled: true, KeyState: "Enabled"}}
}

func (s *Server) create(*struct{ Description string }) (any, *failure) {
	return described(s.newKey()), nil
}

func (s *Server) describe(in *struct{ KeyId string }) (any, *failure) {
	arn, _, f := s.find(in.KeyId)
	if f != nil {
		return nil, f
	}
	return described(arn), nil
}

var aliasName = regexp.MustCompile(`^alias/[A-Za-z0-9/_-]{1,250}$`)

func (s *Server) alias(in *struct{ AliasName, TargetKeyId string }) (any, *failure) {
	arn, _, f := s.find(in.TargetKeyId)
	switch {
	case f != nil:
		return nil, f
	case !aliasName.MatchString(in.AliasName):
		return nil, fail("InvalidAliasNameException", "%s", in.AliasName)
	case s.aliases[in.AliasName] != "":
		return nil, fail("AlreadyExistsException", "An alias with the name %s already exists", in.AliasName)
	}
	s.aliases[in.AliasName] = arn
	return map[string]any{}, nil
}

func (s *Server) schedule(in *struct {
	KeyId               string
	PendingWindowInDays int
}) (any, *failure) {
	arn, _, f := s.find(in.KeyId)
	if f != nil {
		return nil, f
	}
	delete(s.keys, arn)
	return map[string]any{"KeyId": arn}, nil
}
