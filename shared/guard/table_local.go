package guard

// restore restores redacted values in the response.
var restore = flag("restore", false)

// localChecks are scanners of the gateway: package scan implements them. Streams are held until
// a check has judged all of them, unless package chain (reachOf) knows its window.
var localChecks = []*Check{
	{ID: "gateway.secrets", Phase: Both, Category: Model, Mutates: true, Params: []Param{redact, restore, flag("entropy", true), not}, Doc: "The text contains no secrets."},
	{ID: "gateway.promptInjection", Phase: Both, Category: Model, Params: []Param{share("threshold"), not}, Doc: "The text is not an attack on the model."},
	{ID: "gateway.profanity", Phase: Both, Category: Model, Mutates: true, Params: []Param{redact, restore, not}, Doc: "The text is polite."},
	{ID: "gateway.invisibleUnicode", Phase: Both, Category: Model, Mutates: true, Params: []Param{redact, not}, Doc: "The text has no invisible characters."},
	{ID: "gateway.systemPromptLeak", Phase: After, Category: Model, Doc: "The response does not reveal the system prompt.", Params: []Param{
		{Name: "threshold", Type: Number, Max: 1, Default: 0.3}, {Name: "minWords", Type: Integer, Min: 4, Max: 1000, Default: 12}, not}},
}

// languageCodes are the language codes that the gateway detects.
var languageCodes = words(`eng_Latn zho_Hans spa_Latn ara_Arab por_Latn ind_Latn fra_Latn jpn_Jpan rus_Cyrl deu_Latn kor_Hang tur_Latn ita_Latn pes_Arab pol_Latn vie_Latn nld_Latn
	hin_Deva tha_Thai heb_Hebr ben_Beng swe_Latn ces_Latn ron_Latn ell_Grek ukr_Cyrl dan_Latn fin_Latn nor_Latn hun_Latn cat_Latn bul_Cyrl msa_Latn hrv_Latn arb_Latn slk_Latn
	lit_Latn lav_Latn srp_Cyrl slv_Latn est_Latn urd_Arab fil_Latn aze_Latn tam_Taml tel_Telu mar_Deva kan_Knda fas_Arab`)

// modelChecks are scanners of the gateway, as localChecks are, in the order of the document.
var modelChecks = []*Check{
	{ID: "gateway.moderateContent", Phase: Both, Category: Model, Doc: "The text is harmless.", Params: []Param{
		categories("categories", true, words("hate hate/threatening harassment harassment/threatening self-harm self-harm/intent self-harm/instructions sexual sexual/minors violence violence/graphic")...), not}},
	{ID: "gateway.language", Phase: Both, Category: Model, Params: []Param{{Name: "language", Type: TextOrList, Enum: languageCodes}, not}, Doc: "The text is in an allowed language."},
	{ID: "gateway.pii", Phase: Both, Category: Model, Mutates: true, Params: []Param{redact, optional(categories("categories", true, words("EMAIL_ADDRESS PHONE_NUMBER LOCATION_ADDRESS NAME IP_ADDRESS CREDIT_CARD SSN IBAN NATIONAL_ID")...)), restore, not}, Doc: "The text contains no personal data."},
	{ID: "gateway.gibberish", Phase: Both, Category: Model, Params: []Param{not}, Doc: "The text makes sense."},
}
