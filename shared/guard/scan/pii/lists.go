package pii

import (
	"strings"
	"sync"

	"gateway/shared/guard/scan/lexicon"
)

// Roles of words in names and addresses.
const (
	first     uint16 = 1 << iota // a first name
	doubtful                     // a first name that is also a word or a place
	title                        // a title before a name
	introduce                    // "is": the end of an introduction
	subject                      // "name": the subject of an introduction
	alone                        // introduces a name alone
	never                        // never part of a name, although capitalized
	particle                     // a particle within names
	street                       // the last word of a street
	road                         // the same, also in lower case
	rue                          // the first word of a street
	state                        // of the United States, by its two letters
	box                          // for mail
	unit                         // in a building
)

// wordsOf lists the words of each role, folded like a Reader folds them.
var wordsOf = map[uint16]string{
	first: `aaron abdul abigail adam adrian adriana agnes ahmad ahmed aisha alan albert alberto alejandra alejandro alessandra alessandro alexander alexandra alexei alfonso alfred alfredo ali alice alicia
		alina alison allison amanda amelia amir amy ana anastasia anders andrea andreas andrei andres andrew andrzej angela angelika anita anja ann anna anne annette annika anthony antoine anton antonia antonio
		anya ariana armando arthur astrid aurelie barbara beatrice beatriz benjamin bernard bernd bernhard beth bettina bianca birgit bjorn bogdan boris brandon brenda brian bridget bruno bryan caitlin camila
		camille carl carla carlos carmen carol carolina caroline catherine cathy cecilia charles charlie chiara chloe chris christian christina christine christoph christopher cindy claire clara claude
		claudia claudio claus connor constance corinne cristina cynthia dagmar daniel daniela danielle danny dariusz darren dave david deborah debra denise dennis derek diana diane diego dieter dimitri
		dmitri dolores dominik dominique donald donna doris dorothy douglas duncan edgar eduardo edward edwin eileen elaine eleanor elena elisa elisabeth elise elizabeth ella ellen elsa emil emilia emily emma
		emmanuel enrico enrique eric erica erik erika ernst esteban esther eugene eva evelyn fabian fatima federico felipe fernanda fernando fiona francesca francesco francisco franz frederic
		frederick friedrich fritz gabriel gabriela gabriele gareth gary geoffrey georg george gerald gerard gerhard gianluca gilbert giorgio giovanni giulia giuseppe gloria gonzalo gordon greg gregory greta
		guillaume guillermo gunther gustavo hannah hans harald harold haruki hassan heather hector heidi heike heinrich heinz helen helena helga helmut henri henrik henry herbert hernan hiroshi holger
		howard hugo ibrahim ignacio igor ines inga ingrid irene irina isaac isabel isabella isabelle ivan ivana jaime jakub james jan jane janet janice javier jean jeff jeffrey jennifer jens jeremy jerome
		jesse jessica jesus jill jim joachim joan joanna joao joaquin johan johanna johannes john johnny jonas jonathan jorge jose josef joseph joshua juan juana juanita judith jules julia julian juliana julie juliette
		julio jurgen justin kaitlyn karen karin karl karolina katarina kate katharina katherine kathleen kathryn katie katja katrin keith kelly kenji kenneth kerstin kevin khalid kimberly klaus krzysztof kurt
		kyle larry lars laura lauren laurent leila lena leon leonard leonardo leslie liam linda lisa lorenzo lothar louis louise luca lucas lucia luciana luigi luis luisa lukas lydia maciej magdalena manfred manuel
		manuela marc marcel marcin marco marcos marcus margaret margarita maria mariana marie marina mario marion markus marta martha martin martina mary maryam mateo mathieu mathilde matteo matthew matthias
		maureen maurice mauricio megan mehmet melanie melissa michael michaela michel michele michelle miguel mike mikhail miriam mohamed mohammad mohammed monica monika monique muhammad mustafa nadia nancy
		naomi natalia natalie nathan nathalie neil nicholas nicola nicolas nicole nigel nikolai nils noah norbert norman olga oliver olivia olivier omar oscar otto pablo pamela paola paolo pascal patricia patrick
		paul paula pauline pavel pawel pedro peggy peter petra philip philippe phillip pierre pilar piotr priya rachel rafael rahul raj rajesh ralf ralph ramon raphael raul rebecca regina reinhard renate rene
		ricardo riccardo richard rita robert roberta roberto rodrigo roger roland rolf ronald rosa rosemary roxanne ruth ryan sabine sabrina sally samantha samir samuel sandra sanjay sara sarah scott sean
		sebastian sergei sergey sergio sharon sheila shirley sigrid silvia simon simona simone sofia sonia sophia sophie stefan stefania stefano steffen stephan stephanie stephen steven stuart
		sunita susan susanne suzanne svetlana sven sylvia takashi tamara tania tanja tara tatiana teresa theodore theresa therese thierry thomas tiffany tim timothy tobias todd tomas tomasz tony tracy
		ulrich ulrike ursula uwe valentina valeria valerie vanessa vera veronica veronika vicente victor victoria viktor vincent vincenzo vladimir walter waltraud wanda wendy werner wilhelm william wolfgang
		xavier yasmin yolanda yosef yuki yusuf yves yvonne zachary zoe`,
	doubtful: `alex angel april art ashley august austin autumn bella bill bob brad brad carter cash chad chase charlotte christian christmas clay cliff crystal dale dallas dawn dean destiny don drew duke earl eden
		faith florence forest frank gene georgia grace grant guy harper harry heath hope hunter iris israel ivy jack jackson jade jasmine jason jay jordan josh joy june ken lance lee lily logan lou luke madison
		mark mason max may mercedes miles morgan nick nora olive pam paris pat pearl pete phil rich rob robin rod rose ruby rusty sam sandy savannah serge sidney skip sky stella steve sue summer sunny
		taylor ted terry tom trinity troy tyler van virginia wade ward will willow wes woody ben dan matt joe jon ron ray roy meg kim lin mia milan lorraine marshall martinez lincoln hamilton kelvin watt celsius santiago
		sofia asia india chelsea brooklyn preston blake cole ross graham craig dominic felix viola violet daisy jasper`,
	title:     "mr mrs ms miss mx dr prof professor herr frau monsieur madame mme mlle senor senora sr sra srta signor signora sig don dona sir madam rev judge officer pan pani fru hr dhr mevr mevrouw doctor doktor",
	introduce: "is are es est e ist lautet was es",
	subject:   "name names nombre nome nom naam navn namn surname nachname vorname apellido cognome fullname firstname lastname patient",
	alone:     "mappelle llamo chiamo heise heisse chamo heet heter signed sincerely",
	never: `the a an this that these those my your his her its our their i we you he she it they and or but so if then when where who what which how why not no yes ok please thanks thank dear hello hi hey
		january february march april may june july august september october november december monday tuesday wednesday thursday friday saturday sunday jan feb mar apr jun jul aug sep oct nov dec
		president minister chairman speaker director manager chancellor secretary senator governor mayor king queen prince princess lord lady captain general colonel
		inc ltd llc gmbh corp company university college school hospital bank church street road avenue university institute department office team group airport station theorem equation law syndrome disease museum
		park river lake mountain island beach city town county country north south east west new old great airlines award prize foundation
		german french english spanish italian american british chinese japanese russian indian european christian jewish muslim catholic
		is are was were be been being have has had do does did can could will would shall should may might must from to in on at by for with about of as into like through after over between out against
		server service user admin customer client support account invoice order number id email phone address date regards best kind yours faithfully error api json http sql python java linux windows
		here there today tomorrow yesterday now just only also very well good all any some every each other another both few more most
		project product field value column table file variable function class method model version key token string integer`,
	particle: "van von de der den del della di da dos das la le du bin ibn al el ten ter zu af av",
	street:   "st street ave avenue rd road blvd boulevard lane ln drive dr court ct place pl square sq terrace ter way parkway pkwy circle cir highway hwy close crescent cres mews row grove gardens hill walk",
	road:     "street avenue boulevard blvd rd",
	rue: `rue avenue av bd boulevard place chemin allee impasse quai cours calle avenida avda plaza paseo carrera via viale piazza corso largo vicolo rua travessa praca alameda ul ulica aleja
		strada bulevardul utca`,
	state: "al ak az ar ca co ct de fl ga hi id il in ia ks ky la me md ma mi mn ms mo mt ne nv nh nj nm ny nc nd oh ok or pa ri sc sd tn tx ut vt va wa wv wi wy dc",
	box:   "box postfach apartado postbus",
	unit:  "apt apartment suite ste unit flat floor fl room",
}

// lists maps the words to their roles.
var lists = sync.OnceValue(func() *lexicon.Set {
	m := map[uint64]uint16{}
	for what, list := range wordsOf {
		for _, w := range strings.Fields(list) {
			m[lexicon.Hash(w)] |= what
		}
	}
	return lexicon.NewSet(m)
})

// compounds are endings of street names.
var compounds = []string{"straße", "strasse", "str.", "str", "weg", "platz", "allee", "gasse", "straat", "gracht", "laan", "gatan", "gata", "vägen", "gade", "vej", "ufer", "damm"}
