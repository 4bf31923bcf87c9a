"""What tells languages apart: frequent words without a meaning of their own, endings of words, and letters.

A word, ending or letter that several languages share counts less for each. Languages without a stemmer are here where
they would be taken for another one that has one.
"""

FUNCTION_WORDS = {
    "afrikaans": "die van en is nie in het vir op wat om te aan met sy hierdie word kan as dit was deur ook daar sal",
    "arabic": "في من على إلى عن مع أن هذا هذه التي الذي كان ما لا أو ثم بين بعد قبل كل عند قد هو هي لم حتى ذلك و خلال",
    "armenian": "և է են որ ու մի այս այդ համար հետ մեջ եւ չի կամ բայց նրա իր որպես մասին էր պետք թե",
    "basque": "eta da ez du bat dira izan ere zuen edo baina hau den dute beste egin bere duen oso nola zen dago "
    "euskal",
    "belarusian": "і ў на з не што да для як у па за гэта або ад яго пры але быў гэтага каб",
    "bulgarian": "на и за от се да в с е по не са към това като или при ще със който която което беше ни му й но",
    "catalan": "de la el i a les que en per del amb un una els no és al dels s l d més aquest aquesta seva són com "
    "o des catalana",
    "czech": "a v na se je s z do pro o že to k i od ve po jako které který nebo ale jsou podle při být jeho není "
    "aby české",
    "danish": "og i at er det en af til på som med for den de der ikke et har var om fra men eller kan sig blev "
    "efter ved hvad uden dette bliver skal danmark danske",
    "dutch": "de het een en van in is op te dat voor met zijn niet aan er om ook als naar bij door uit wordt maar "
    "of deze nederland nederlandse",
    "english": "the of and to in a is that for it with as on by at from this are or an be not how what which its "
    "was were their between about into can you",
    "esperanto": "la kaj de en estas al ne por kun ĉu sed oni pri kiel ĝi el tio kiu estis aŭ ke",
    "estonian": "ja on ei et ta see oli ka kui või mis aga oma kes ning selle olid ole eesti seda üle mida veel pärast",
    "finnish": "ja on ei se että oli hän sekä tai kun mutta ovat joka myös kuin ne sen ole niin jotka mukaan vuoden "
    "mitä ovatko miten käyttö voi sitä tämä jos eli kanssa suomi suomen suomessa",
    "french": "de la le et les des en du un une dans pour que est par sur au qui ne aux se ce il pas plus son avec "
    "sa ses ou cette sont d l française français",
    "galician": "de a o que e do da en un unha non os para por no na se como ao dos máis é con as das foi pola polo",
    "german": "der die und das in von den zu mit im des ein eine für auf ist dem nicht auch als an es sich aus bei "
    "nach wie über oder zur zum einer wird durch deutschland deutsche deutschen",
    "greek": "και το της του η ο την τα να με για από στο στη τον οι σε των που είναι στην δεν τους ένα μια ως αυτό",
    "hebrew": "של את על לא הוא זה עם גם כי אל או היא אם כל יש בין אבל מה היה לפי",
    "hindi": "के में है की और से का को पर यह ने एक हैं लिए भी नहीं इस कि जो कर तक था ही या थी",
    "hungarian": "a az és hogy nem is egy van ez volt meg csak de mint már ki még vagy kell ha aki sem után azt "
    "amely magyar",
    "icelandic": "og að í á er um sem til við með það ekki fyrir en af frá var hefur eða þú þessi vera ekki því",
    "indonesian": "yang dan di dari untuk dengan pada ini dalam tidak adalah oleh itu ke akan sebagai juga atau "
    "telah dapat karena lebih bisa ada tersebut para",
    "irish": "an na agus ar i a go le is do de ag bhí sé tá seo leis ní nó ach bhfuil as atá mar sin ó faoi ina",
    "italian": "di e il la che in un per una del della è i le non con dei da al si sono alla nel come più su gli ed "
    "delle nella dal lo anche o degli tra questo italiana italiano",
    "latvian": "un ir par no ar uz kas ka lai tā kā pie bet vai pēc tas to gadā bija nav līdz arī savu",
    "lithuanian": "ir yra kad į iš su apie kaip bet tai ar per nuo buvo už kuris jo jų po prie taip dėl tačiau ne",
    "marathi": "आणि आहे या च्या ते हे नाही होते आहेत की मध्ये तो ही साठी असे केले",
    "nepali": "र को छ मा का हो यो ले लागि पनि गर्न भएको छन् एक गरेको तथा नेपाल थियो हुने गर्ने",
    "norwegian": "og i er det en av til på som med for den de ikke et har var om fra men eller kan seg ble etter "
    "ved å uten mer hva noen blir skal norge norske",
    "persian": "و در به از که این را با است برای آن یک خود تا های بر می شود شده بود هم نیز یا ها کرد",
    "polish": "w i z na do się że nie o jest to od po dla jak za przez oraz ale ze są co jego lub tym przy być ich "
    "która polska polskiej",
    "portuguese": "de a o e que do da em um para com uma os no na por as não dos ao se como mais das à foi nos são "
    "pelo pela sobre entre sua portuguesa português",
    "romanian": "de și în la cu a din pe pentru care un o nu că este sau mai al se fost ale sunt prin după ca lui "
    "între românia",
    "russian": "и в на не что с по как к из это для от его о то за а при или был так но она они со до также россии",
    "serbian": "и у је на се да од за су са не као који из или што по али то u je na se da od za su sa kao koji iz "
    "ili što ali bio nije prema",
    "slovak": "a v na sa je s z do pre o že to k aj od vo po ako ktoré ktorý alebo ale sú podľa pri byť jeho nie aby",
    "slovenian": "in v je na za se da so z s ki pri kot tudi po ne od iz bi ali pa ni med ter tega kako",
    "spanish": "de la el en y que los del las un por con una para se al es su lo como más o no sobre entre sus pero "
    "fue desde son este esta españa española español",
    "swedish": "och i att det en av för är på som till den med de inte ett har om från var eller vid hur kan efter "
    "ska under mellan sverige svenska",
    "tamil": "ஒரு மற்றும் இந்த என்று அவர் என இது உள்ள அந்த இருந்து பல கொண்டு வேண்டும் தான் அல்லது",
    "turkish": "ve bir bu için ile da de olarak olan daha çok en gibi ne kadar ama o var değil sonra her mi göre "
    "veya ki türk türkiye",
    "ukrainian": "і в на з у що не до та за як від це про для його є або але по він також при які бути",
    "urdu": "کے میں ہے کی اور سے کا کو پر یہ نے ایک ہیں لیے بھی نہیں اس کہ جو کر تک",
    "vietnamese": "và của là có không trong được các một cho với những người đã này để khi từ đến về",
    "yiddish": "און די דער פון אין איז צו מיט אַ דאָס נישט אויף וואָס האָט זיך פֿון ער",
}

ENDINGS = {
    "basque": "ak aren etan tasun keta koa",
    "catalan": "ció cions tat itat ment",
    "czech": "ost ání ení ství ický",
    "danish": "hed else erne ninger ende",
    "dutch": "heid ing lijk ingen atie schap isch",
    "english": "ing tion tions ness ity ies ical ment ments ship ogy able ed ous ways ence",
    "estonian": "mine sed dus seks ud ikud",
    "finnish": "inen iset minen uus yys ssa ssä sta stä lla llä lle jen ksen aan lija oja istö tiikka ologia utta",
    "french": "tion tions ité ités eur euse eux ique iques ement age ais",
    "german": "ung ungen keit heit schaft lich isch tion ieren",
    "hungarian": "ság ség ban ben ások ések nak nek",
    "indonesian": "kan nya asi isasi",
    "irish": "acht íocht eacha anna",
    "italian": "zione zioni ità mento menti aggio ismo logia ico iche tore tori ezza ale ali ano",
    "latvian": "šana ība iem umi",
    "lithuanian": "imas umas ybė jos ius ai",
    "norwegian": "het else ene ninger ende skap",
    "polish": "ość anie enie owy owych ych acja stwo",
    "portuguese": "ção ções dade dades mento ismo agem ês",
    "romanian": "ție ții tate itate ului lor iei ea",
    "russian": "ция ции ость ости ние ния ный ная ские ский ение ов ого",
    "bulgarian": "ция ост ост ски ите ията ето ане",
    "serbian": "ција ост ање ски ција cija ost anje ski",
    "slovenian": "ost anje ski cija nje",
    "spanish": "ción ciones dad dades miento ismo aje ales ico ica",
    "swedish": "ning het ande else ningar erna skap iska",
    "turkish": "lık lik ları leri mesi ması nin",
    "ukrainian": "ція ість ння ський ів ого",
}

LETTERS = {
    "catalan": "çàèòï", "czech": "ěřůýč", "danish": "æøå", "estonian": "õäöü", "finnish": "äö", "french": "çéèêàîœ",
    "german": "ßäöü", "hungarian": "őű", "italian": "àèìòù", "latvian": "āēīļņģ",
    "lithuanian": "ėųūįš", "norwegian": "æøå", "polish": "łąęśćż", "portuguese": "ãõ", "romanian": "șțăşţâî",
    "slovak": "ľĺŕôýč", "slovenian": "čšž", "spanish": "ñ", "swedish": "åäö", "turkish": "ığş", "basque": "ñ",
    "vietnamese": "ơưđạảấệộ",
    "belarusian": "ўыэёі", "russian": "ыэёй", "ukrainian": "іїєґ", "esperanto": "ĉĝĥĵŝŭ",
    "bulgarian": "ъщ", "serbian": "јљњђћџčćžšđ",
    "arabic": "ةىأإ", "persian": "پچژگ", "urdu": "ٹڈںےہ", "yiddish": "ײװױ",
}  # fmt: skip

SCRIPTS = {
    "armenian": "\u0531-\u058f", "greek": "\u0370-\u03ff\u1f00-\u1fff", "tamil": "\u0b80-\u0bff",
    "thai": "\u0e00-\u0e7f", "korean": "\u1100-\u11ff\uac00-\ud7a3", "japanese": "\u3040-\u30ff",
    "chinese": "\u3400-\u9fff",
}  # fmt: skip
"""The letters of scripts of one language."""

SHARED_SCRIPTS = {
    "russian": "\u0400-\u04ff", "arabic": "\u0600-\u06ff", "hebrew": "\u0590-\u05ff", "hindi": "\u0900-\u097f",
}  # fmt: skip
"""The letters of scripts of several languages, and the one that most texts in it are of."""

CODES = {
    "af": "afrikaans", "gl": "galician", "is": "icelandic",
    "ar": "arabic", "hy": "armenian", "eu": "basque", "be": "belarusian", "bg": "bulgarian", "ca": "catalan",
    "zh": "chinese", "cs": "czech", "da": "danish", "nl": "dutch", "en": "english", "eo": "esperanto", "et": "estonian",
    "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "he": "hebrew", "hi": "hindi", "hu": "hungarian",
    "id": "indonesian", "ga": "irish", "it": "italian", "ja": "japanese", "ko": "korean", "lv": "latvian",
    "lt": "lithuanian", "mr": "marathi", "ne": "nepali", "no": "norwegian", "nb": "norwegian", "nn": "norwegian",
    "fa": "persian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "hr": "serbian", "bs": "serbian", "st": "sesotho", "sk": "slovak", "sl": "slovenian", "es": "spanish",
    "sv": "swedish", "ta": "tamil", "th": "thai", "tr": "turkish", "uk": "ukrainian", "ur": "urdu",
    "vi": "vietnamese", "yi": "yiddish",
}  # fmt: skip
"""ISO 639-1 codes; Croatian and Bosnian have the stems of Serbian."""
