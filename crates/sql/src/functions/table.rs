//! The table of functions.

/// Declares [`FuncId`] and its table: `Variant "NAME" min..=max class`.
macro_rules! functions {
    ($($variant:ident $name:literal $min:literal ..= $max:literal $class:ident;)*) => {
        /// A scalar function or operator.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum FuncId { $($variant),* }

        impl FuncId {
            /// All of them.
            pub const ALL: &'static [FuncId] = &[$(FuncId::$variant),*];

            /// Its name in SQL, upper case; operators have their symbol.
            pub fn name(self) -> &'static str {
                match self { $(FuncId::$variant => $name),* }
            }

            /// The fewest and the most arguments.
            pub fn arity(self) -> (usize, usize) {
                match self { $(FuncId::$variant => ($min, $max)),* }
            }

            fn class(self) -> Class {
                match self { $(FuncId::$variant => Class::$class),* }
            }
        }
    };
}

#[derive(PartialEq)]
enum Class {
    /// The arguments alone decide the result (with sql_mode and warnings).
    Pure,
    /// The same, of a function of geometries.
    Spatial,
    /// The same during one statement: NOW(), DATABASE() …
    Statement,
    /// May differ from row to row, or does something.
    Volatile,
}

impl FuncId {
    /// May differ from row to row, or does something.
    pub fn is_volatile(self) -> bool {
        self.class() == Class::Volatile
    }

    /// A replica that runs the statement may see something else.
    pub fn differs_on_replicas(self) -> bool {
        use FuncId::*;
        self.is_volatile() || matches!(self, AesDecrypt | AesEncrypt | CurrentUser | FoundRows | PsCurrentThreadId | PsThreadId | RowCount | User | Version)
    }

    /// SQL calls it by its name: it is no operator and no target of special syntax.
    pub(crate) fn is_named(self) -> bool {
        use FuncId::*;
        !matches!(
            self,
            Add | Sub | Mul | Div | IntDiv | Neg | BitAnd | BitOr | BitXor | BitNot | ShiftLeft | ShiftRight | Xor | DateAdd | DateSub | Extract
                | TimestampDiff | ComparedMoment | ShownMoment | ConvertUsing | CutText | PadBytes | TrimLeading | TrimTrailing | IsNullFunc | JsonOf | JsonTruth | JsonMemberOf
                | JsonValue
        )
    }

    /// A JSON function: it looks at NULL itself, as one may come behind an argument that is wrong.
    pub(super) fn is_json(self) -> bool {
        use FuncId::*;
        matches!(
            self,
            JsonOf | JsonTruth | JsonMemberOf | JsonValue | JsonSchemaValid | JsonSchemaValidationReport | JsonValid | JsonQuote | JsonUnquote | JsonExtract | JsonArray | JsonObject | JsonLength | JsonType | JsonKeys
                | JsonContains | JsonContainsPath | JsonOverlaps | JsonSearch | JsonSet | JsonInsert | JsonReplace | JsonRemove | JsonArrayAppend
                | JsonArrayInsert | JsonMerge | JsonMergePatch | JsonMergePreserve | JsonDepth | JsonPretty | JsonStorageSize | JsonStorageFree
        )
    }

    /// A function of geometries.
    pub(crate) fn is_spatial(self) -> bool {
        self.class() == Class::Spatial
    }

    /// It takes its arguments as text, whatever they are.
    pub(crate) fn reads_text(self) -> bool {
        use FuncId::*;
        matches!(
            self,
            AesDecrypt | AesEncrypt | Ascii | BitLength | CharLength | Compress | Concat | ConcatWs | ConvertUsing | Crc32 | CutText | Elt | ExportSet | ExtractValue | FindInSet | Hex | Insert | Instr | Left
                | Length | Locate | Lower | Lpad | Ltrim | MakeSet | Md5 | Ord | PadBytes | Quote | RegexpInstr | RegexpLike | RegexpReplace | RegexpSubstr
                | Repeat | Replace | Reverse | Right | Rpad | Rtrim | Sha1 | Sha2 | Soundex | Strcmp | Substring | SubstringIndex | ToBase64 | TrimBoth
                | TrimLeading | TrimTrailing | Uncompress | UncompressedLength | Unhex | UpdateXml | Upper | WeightString
        )
    }

    /// Of a function that reads text: its i-th argument is text even if it is a number that shows more than its digits (YEAR, ZEROFILL, BIT).
    pub(crate) fn reads_number_as_text(self, i: usize) -> bool {
        use FuncId::*;
        match self {
            Hex => false,
            Elt | ExportSet | MakeSet => i > 0,
            AesDecrypt | AesEncrypt | Concat | ConcatWs | ExtractValue | FindInSet | Instr | Replace | Strcmp | UpdateXml => true,
            Locate | RegexpInstr | RegexpLike | RegexpReplace | RegexpSubstr | SubstringIndex => i < 2,
            _ => i == 0,
        }
    }

    /// It computes with decimals: its arguments keep the digits beyond their types' scale.
    pub(crate) fn is_arithmetic(self) -> bool {
        use FuncId::*;
        matches!(self, Add | Sub | Mul | Div | IntDiv | Mod | Neg | Abs | Round | Truncate | Ceiling | Floor | Sign | Coalesce)
    }

    /// Its string arguments meet: their collations are aggregated. Otherwise the first argument's counts.
    pub(crate) fn merges_collations(self) -> bool {
        use FuncId::*;
        matches!(
            self,
            Concat | ConcatWs | Elt | ExportSet | ExtractValue | FindInSet | Insert | Instr | Locate | Lpad | MakeSet | RegexpInstr | RegexpLike | RegexpReplace
                | RegexpSubstr | Replace | Rpad | Strcmp | SubstringIndex | TrimBoth | TrimLeading | TrimTrailing | UpdateXml
        )
    }

    /// It compares its strings, so that they need one collation.
    pub(crate) fn compares_strings(self) -> bool {
        use FuncId::*;
        matches!(self, FindInSet | Instr | Locate | RegexpInstr | RegexpLike | RegexpReplace | RegexpSubstr | Replace | Strcmp | SubstringIndex)
    }

    /// A hexadecimal literal is a number as the argument with this index.
    pub(crate) fn wants_number(self, argument: usize) -> bool {
        use FuncId::*;
        match self {
            Abs | Acos | Asin | Atan | Atan2 | Ceiling | Cos | Cot | Degrees | Exp | Floor | Ln | Log | Log10 | Log2 | Mod | Pow | Radians | Round | Sign
            | Sin | Sqrt | Tan | Truncate | InetNtoa | FormatBytes | FormatPicoTime | Bin | Oct | Char | Space | FromDays | MakeDate | MakeTime | SecToTime
            | PeriodAdd | PeriodDiff | Rand | RandomBytes | Sleep => true,
            Elt | FromUnixtime | MakeSet => argument == 0,
            Left | Lpad | Repeat | Right | Rpad => argument == 1,
            Conv => argument > 0,
            Format => argument < 2,
            Insert => argument == 1 || argument == 2,
            Substring => argument > 0,
            Locate | SubstringIndex => argument == 2,
            ExportSet => argument == 0 || argument == 4,
            _ => false,
        }
    }

    /// The digits after the point of its seconds, or its type, are those that a literal text among its arguments asks for.
    pub fn has_seconds_of_text(self) -> bool {
        use FuncId::*;
        matches!(self, StrToDate | UnixTimestamp | TimestampFunc | TimeFunc | TimeDiff | AddTime | SubTime | ConvertTz)
    }

    /// The arguments alone decide the result.
    pub fn is_deterministic(self) -> bool {
        matches!(self.class(), Class::Pure | Class::Spatial)
    }
}

functions! {
    // Operators.
    Add "+" 2..=2 Pure;
    Sub "-" 2..=2 Pure;
    Mul "*" 2..=2 Pure;
    Div "/" 2..=2 Pure;
    IntDiv "DIV" 2..=2 Pure;
    Mod "MOD" 2..=2 Pure;
    Neg "-" 1..=1 Pure;
    BitAnd "&" 2..=2 Pure;
    BitOr "|" 2..=2 Pure;
    BitXor "^" 2..=2 Pure;
    BitNot "~" 1..=1 Pure;
    ShiftLeft "<<" 2..=2 Pure;
    ShiftRight ">>" 2..=2 Pure;
    Xor "XOR" 2..=2 Pure;
    // Date plus or minus an interval: (date, value, unit name as a literal).
    DateAdd "DATE_ADD" 3..=3 Pure;
    DateSub "DATE_SUB" 3..=3 Pure;
    // (unit name as a literal, date) and (unit, from, to).
    Extract "EXTRACT" 2..=2 Pure;
    TimestampDiff "TIMESTAMPDIFF" 3..=3 Pure;
    // Control. Arguments are evaluated only as far as needed.
    Coalesce "COALESCE" 1..=255 Pure;
    Greatest "GREATEST" 2..=255 Pure;
    Least "LEAST" 2..=255 Pure;
    Interval "INTERVAL" 2..=255 Pure;
    IsNullFunc "ISNULL" 1..=1 Pure;
    // What a string is among moments, where it is compared with one.
    ComparedMoment "MOMENT" 1..=1 Pure;
    // The text of a moment, or another text if it is the zero date: (moment, text).
    ShownMoment "MOMENT_TEXT" 2..=2 Pure;
    // Conversion of a string's character set: (text, charset name as a literal); collation is the type's.
    ConvertUsing "CONVERT" 2..=2 Pure;
    // CAST to CHAR(n) and BINARY(n): (string, n) cut to n characters, padded to n bytes.
    CutText "CAST_AS_CHAR" 2..=2 Pure;
    PadBytes "CAST_AS_BINARY" 2..=2 Pure;
    // Strings.
    Ascii "ASCII" 1..=1 Pure;
    Bin "BIN" 1..=1 Pure;
    BitLength "BIT_LENGTH" 1..=1 Pure;
    Char "CHAR" 1..=255 Pure;
    CharLength "CHAR_LENGTH" 1..=1 Pure;
    Concat "CONCAT" 1..=255 Pure;
    ConcatWs "CONCAT_WS" 2..=255 Pure;
    Elt "ELT" 2..=255 Pure;
    ExportSet "EXPORT_SET" 3..=5 Pure;
    Field "FIELD" 2..=255 Pure;
    FindInSet "FIND_IN_SET" 2..=2 Pure;
    Format "FORMAT" 2..=3 Pure;
    FromBase64 "FROM_BASE64" 1..=1 Pure;
    Hex "HEX" 1..=1 Pure;
    Insert "INSERT" 4..=4 Pure;
    Instr "INSTR" 2..=2 Pure;
    Left "LEFT" 2..=2 Pure;
    Length "LENGTH" 1..=1 Pure;
    LoadFile "LOAD_FILE" 1..=1 Volatile;
    Locate "LOCATE" 2..=3 Pure;
    Lower "LOWER" 1..=1 Pure;
    Lpad "LPAD" 3..=3 Pure;
    Ltrim "LTRIM" 1..=1 Pure;
    MakeSet "MAKE_SET" 2..=255 Pure;
    Oct "OCT" 1..=1 Pure;
    Ord "ORD" 1..=1 Pure;
    Quote "QUOTE" 1..=1 Pure;
    RegexpInstr "REGEXP_INSTR" 2..=6 Pure;
    RegexpLike "REGEXP_LIKE" 2..=3 Pure;
    RegexpReplace "REGEXP_REPLACE" 3..=6 Pure;
    RegexpSubstr "REGEXP_SUBSTR" 2..=5 Pure;
    Repeat "REPEAT" 2..=2 Pure;
    Replace "REPLACE" 3..=3 Pure;
    Reverse "REVERSE" 1..=1 Pure;
    Right "RIGHT" 2..=2 Pure;
    Rpad "RPAD" 3..=3 Pure;
    Rtrim "RTRIM" 1..=1 Pure;
    Soundex "SOUNDEX" 1..=1 Pure;
    Space "SPACE" 1..=1 Pure;
    Strcmp "STRCMP" 2..=2 Pure;
    Substring "SUBSTRING" 2..=3 Pure;
    SubstringIndex "SUBSTRING_INDEX" 3..=3 Pure;
    ToBase64 "TO_BASE64" 1..=1 Pure;
    TrimBoth "TRIM" 1..=2 Pure;
    TrimLeading "TRIM_LEADING" 1..=2 Pure;
    TrimTrailing "TRIM_TRAILING" 1..=2 Pure;
    Unhex "UNHEX" 1..=1 Pure;
    Upper "UPPER" 1..=1 Pure;
    WeightString "WEIGHT_STRING" 1..=1 Pure;
    Charset "CHARSET" 1..=1 Pure;
    Collation "COLLATION" 1..=1 Pure;
    Coercibility "COERCIBILITY" 1..=1 Pure;
    // Numbers.
    Abs "ABS" 1..=1 Pure;
    Acos "ACOS" 1..=1 Pure;
    Asin "ASIN" 1..=1 Pure;
    Atan "ATAN" 1..=2 Pure;
    Atan2 "ATAN2" 1..=2 Pure;
    Ceiling "CEILING" 1..=1 Pure;
    Conv "CONV" 3..=3 Pure;
    Cos "COS" 1..=1 Pure;
    Cot "COT" 1..=1 Pure;
    Crc32 "CRC32" 1..=1 Pure;
    Degrees "DEGREES" 1..=1 Pure;
    Exp "EXP" 1..=1 Pure;
    Floor "FLOOR" 1..=1 Pure;
    Ln "LN" 1..=1 Pure;
    Log "LOG" 1..=2 Pure;
    Log10 "LOG10" 1..=1 Pure;
    Log2 "LOG2" 1..=1 Pure;
    Pi "PI" 0..=0 Pure;
    Pow "POW" 2..=2 Pure;
    Radians "RADIANS" 1..=1 Pure;
    Rand "RAND" 0..=1 Volatile;
    Round "ROUND" 1..=2 Pure;
    Sign "SIGN" 1..=1 Pure;
    Sin "SIN" 1..=1 Pure;
    Sqrt "SQRT" 1..=1 Pure;
    Tan "TAN" 1..=1 Pure;
    Truncate "TRUNCATE" 2..=2 Pure;
    BitCount "BIT_COUNT" 1..=1 Pure;
    // Dates and times.
    AddTime "ADDTIME" 2..=2 Pure;
    ConvertTz "CONVERT_TZ" 3..=3 Pure;
    CurDate "CURDATE" 0..=0 Statement;
    CurTime "CURTIME" 0..=1 Statement;
    DateFunc "DATE" 1..=1 Pure;
    DateDiff "DATEDIFF" 2..=2 Pure;
    DateFormat "DATE_FORMAT" 2..=2 Pure;
    DayName "DAYNAME" 1..=1 Pure;
    DayOfMonth "DAYOFMONTH" 1..=1 Pure;
    DayOfWeek "DAYOFWEEK" 1..=1 Pure;
    DayOfYear "DAYOFYEAR" 1..=1 Pure;
    FromDays "FROM_DAYS" 1..=1 Pure;
    FromUnixtime "FROM_UNIXTIME" 1..=2 Statement;
    GetFormat "GET_FORMAT" 2..=2 Pure;
    Hour "HOUR" 1..=1 Pure;
    LastDay "LAST_DAY" 1..=1 Pure;
    MakeDate "MAKEDATE" 2..=2 Pure;
    MakeTime "MAKETIME" 3..=3 Pure;
    Microsecond "MICROSECOND" 1..=1 Pure;
    Minute "MINUTE" 1..=1 Pure;
    Month "MONTH" 1..=1 Pure;
    MonthName "MONTHNAME" 1..=1 Pure;
    Now "NOW" 0..=1 Statement;
    PeriodAdd "PERIOD_ADD" 2..=2 Pure;
    PeriodDiff "PERIOD_DIFF" 2..=2 Pure;
    Quarter "QUARTER" 1..=1 Pure;
    SecToTime "SEC_TO_TIME" 1..=1 Pure;
    Second "SECOND" 1..=1 Pure;
    StrToDate "STR_TO_DATE" 2..=2 Pure;
    SubTime "SUBTIME" 2..=2 Pure;
    SysDate "SYSDATE" 0..=1 Volatile;
    TimeFunc "TIME" 1..=1 Pure;
    TimeDiff "TIMEDIFF" 2..=2 Pure;
    TimeFormat "TIME_FORMAT" 2..=2 Pure;
    TimeToSec "TIME_TO_SEC" 1..=1 Pure;
    TimestampFunc "TIMESTAMP" 1..=2 Statement;
    ToDays "TO_DAYS" 1..=1 Pure;
    ToSeconds "TO_SECONDS" 1..=1 Pure;
    UnixTimestamp "UNIX_TIMESTAMP" 0..=1 Statement;
    UtcDate "UTC_DATE" 0..=0 Statement;
    UtcTime "UTC_TIME" 0..=1 Statement;
    UtcTimestamp "UTC_TIMESTAMP" 0..=1 Statement;
    Week "WEEK" 1..=2 Statement;
    Weekday "WEEKDAY" 1..=1 Pure;
    WeekOfYear "WEEKOFYEAR" 1..=1 Pure;
    Year "YEAR" 1..=1 Pure;
    YearWeek "YEARWEEK" 1..=2 Pure;
    // JSON. Of a value inside a document: of any SQL value, of a condition. An array and a value: value MEMBER OF (array).
    JsonOf "JSON_OF" 1..=1 Pure;
    JsonTruth "JSON_TRUTH" 1..=1 Pure;
    JsonMemberOf "MEMBER_OF" 2..=2 Pure;
    // (document, path, what to answer where there is nothing, a value for it, the same where there is something else).
    JsonValue "JSON_VALUE" 6..=6 Pure;
    JsonSchemaValid "JSON_SCHEMA_VALID" 2..=2 Pure;
    JsonSchemaValidationReport "JSON_SCHEMA_VALIDATION_REPORT" 2..=2 Pure;
    JsonValid "JSON_VALID" 1..=1 Pure;
    JsonQuote "JSON_QUOTE" 1..=1 Pure;
    JsonUnquote "JSON_UNQUOTE" 1..=1 Pure;
    JsonExtract "JSON_EXTRACT" 2..=255 Pure;
    JsonArray "JSON_ARRAY" 0..=255 Pure;
    JsonObject "JSON_OBJECT" 0..=255 Pure;
    JsonLength "JSON_LENGTH" 1..=2 Pure;
    JsonType "JSON_TYPE" 1..=1 Pure;
    JsonKeys "JSON_KEYS" 1..=2 Pure;
    JsonContains "JSON_CONTAINS" 2..=3 Pure;
    JsonContainsPath "JSON_CONTAINS_PATH" 3..=255 Pure;
    JsonOverlaps "JSON_OVERLAPS" 2..=2 Pure;
    JsonSearch "JSON_SEARCH" 3..=255 Pure;
    JsonSet "JSON_SET" 3..=255 Pure;
    JsonInsert "JSON_INSERT" 3..=255 Pure;
    JsonReplace "JSON_REPLACE" 3..=255 Pure;
    JsonRemove "JSON_REMOVE" 2..=255 Pure;
    JsonArrayAppend "JSON_ARRAY_APPEND" 3..=255 Pure;
    JsonArrayInsert "JSON_ARRAY_INSERT" 3..=255 Pure;
    JsonMerge "JSON_MERGE" 2..=255 Pure;
    JsonMergePatch "JSON_MERGE_PATCH" 2..=255 Pure;
    JsonMergePreserve "JSON_MERGE_PRESERVE" 2..=255 Pure;
    JsonDepth "JSON_DEPTH" 1..=1 Pure;
    JsonPretty "JSON_PRETTY" 1..=1 Pure;
    JsonStorageSize "JSON_STORAGE_SIZE" 1..=1 Pure;
    JsonStorageFree "JSON_STORAGE_FREE" 1..=1 Pure;
    // XML.
    ExtractValue "EXTRACTVALUE" 2..=2 Pure;
    UpdateXml "UPDATEXML" 3..=3 Pure;
    // Geometries.
    StGeomFromText "ST_GEOMFROMTEXT" 1..=3 Spatial;
    StGeometryFromText "ST_GEOMETRYFROMTEXT" 1..=3 Spatial;
    StPointFromText "ST_POINTFROMTEXT" 1..=3 Spatial;
    StLineFromText "ST_LINEFROMTEXT" 1..=3 Spatial;
    StLineStringFromText "ST_LINESTRINGFROMTEXT" 1..=3 Spatial;
    StPolyFromText "ST_POLYFROMTEXT" 1..=3 Spatial;
    StPolygonFromText "ST_POLYGONFROMTEXT" 1..=3 Spatial;
    StMPointFromText "ST_MPOINTFROMTEXT" 1..=3 Spatial;
    StMultiPointFromText "ST_MULTIPOINTFROMTEXT" 1..=3 Spatial;
    StMLineFromText "ST_MLINEFROMTEXT" 1..=3 Spatial;
    StMultiLineStringFromText "ST_MULTILINESTRINGFROMTEXT" 1..=3 Spatial;
    StMPolyFromText "ST_MPOLYFROMTEXT" 1..=3 Spatial;
    StMultiPolygonFromText "ST_MULTIPOLYGONFROMTEXT" 1..=3 Spatial;
    StGeomCollFromText "ST_GEOMCOLLFROMTEXT" 1..=3 Spatial;
    StGeometryCollectionFromText "ST_GEOMETRYCOLLECTIONFROMTEXT" 1..=3 Spatial;
    StGeomCollFromTxt "ST_GEOMCOLLFROMTXT" 1..=3 Spatial;
    StGeomFromWkb "ST_GEOMFROMWKB" 1..=3 Spatial;
    StGeometryFromWkb "ST_GEOMETRYFROMWKB" 1..=3 Spatial;
    StPointFromWkb "ST_POINTFROMWKB" 1..=3 Spatial;
    StLineFromWkb "ST_LINEFROMWKB" 1..=3 Spatial;
    StLineStringFromWkb "ST_LINESTRINGFROMWKB" 1..=3 Spatial;
    StPolyFromWkb "ST_POLYFROMWKB" 1..=3 Spatial;
    StPolygonFromWkb "ST_POLYGONFROMWKB" 1..=3 Spatial;
    StMPointFromWkb "ST_MPOINTFROMWKB" 1..=3 Spatial;
    StMultiPointFromWkb "ST_MULTIPOINTFROMWKB" 1..=3 Spatial;
    StMLineFromWkb "ST_MLINEFROMWKB" 1..=3 Spatial;
    StMultiLineStringFromWkb "ST_MULTILINESTRINGFROMWKB" 1..=3 Spatial;
    StMPolyFromWkb "ST_MPOLYFROMWKB" 1..=3 Spatial;
    StMultiPolygonFromWkb "ST_MULTIPOLYGONFROMWKB" 1..=3 Spatial;
    StGeomCollFromWkb "ST_GEOMCOLLFROMWKB" 1..=3 Spatial;
    StGeometryCollectionFromWkb "ST_GEOMETRYCOLLECTIONFROMWKB" 1..=3 Spatial;
    StAsText "ST_ASTEXT" 1..=2 Spatial;
    StAsBinary "ST_ASWKB" 1..=2 Spatial;
    StGeomFromGeoJson "ST_GEOMFROMGEOJSON" 1..=3 Spatial;
    StAsGeoJson "ST_ASGEOJSON" 1..=3 Spatial;
    StGeoHash "ST_GEOHASH" 2..=3 Spatial;
    StLatFromGeoHash "ST_LATFROMGEOHASH" 1..=1 Spatial;
    StLongFromGeoHash "ST_LONGFROMGEOHASH" 1..=1 Spatial;
    StPointFromGeoHash "ST_POINTFROMGEOHASH" 2..=2 Spatial;
    Point "POINT" 2..=2 Spatial;
    LineString "LINESTRING" 1..=255 Spatial;
    Polygon "POLYGON" 1..=255 Spatial;
    MultiPoint "MULTIPOINT" 1..=255 Spatial;
    MultiLineString "MULTILINESTRING" 1..=255 Spatial;
    MultiPolygon "MULTIPOLYGON" 1..=255 Spatial;
    GeometryCollection "GEOMETRYCOLLECTION" 0..=255 Spatial;
    StX "ST_X" 1..=2 Spatial;
    StY "ST_Y" 1..=2 Spatial;
    StLatitude "ST_LATITUDE" 1..=2 Spatial;
    StLongitude "ST_LONGITUDE" 1..=2 Spatial;
    StSrid "ST_SRID" 1..=2 Spatial;
    StGeometryType "ST_GEOMETRYTYPE" 1..=1 Spatial;
    StDimension "ST_DIMENSION" 1..=1 Spatial;
    StEnvelope "ST_ENVELOPE" 1..=1 Spatial;
    StIsEmpty "ST_ISEMPTY" 1..=1 Spatial;
    StIsSimple "ST_ISSIMPLE" 1..=1 Spatial;
    StIsValid "ST_ISVALID" 1..=1 Spatial;
    StIsClosed "ST_ISCLOSED" 1..=1 Spatial;
    StNumPoints "ST_NUMPOINTS" 1..=1 Spatial;
    StPointN "ST_POINTN" 2..=2 Spatial;
    StStartPoint "ST_STARTPOINT" 1..=1 Spatial;
    StEndPoint "ST_ENDPOINT" 1..=1 Spatial;
    StLength "ST_LENGTH" 1..=1 Spatial;
    StArea "ST_AREA" 1..=1 Spatial;
    StCentroid "ST_CENTROID" 1..=1 Spatial;
    StExteriorRing "ST_EXTERIORRING" 1..=1 Spatial;
    StInteriorRingN "ST_INTERIORRINGN" 2..=2 Spatial;
    StNumInteriorRings "ST_NUMINTERIORRINGS" 1..=1 Spatial;
    StNumGeometries "ST_NUMGEOMETRIES" 1..=1 Spatial;
    StGeometryN "ST_GEOMETRYN" 2..=2 Spatial;
    StConvexHull "ST_CONVEXHULL" 1..=1 Spatial;
    StSimplify "ST_SIMPLIFY" 2..=2 Spatial;
    StSwapXy "ST_SWAPXY" 1..=1 Spatial;
    StValidate "ST_VALIDATE" 1..=1 Spatial;
    StMakeEnvelope "ST_MAKEENVELOPE" 2..=2 Spatial;
    StDistance "ST_DISTANCE" 2..=2 Spatial;
    StDistanceSphere "ST_DISTANCE_SPHERE" 2..=3 Spatial;
    StContains "ST_CONTAINS" 2..=2 Spatial;
    StWithin "ST_WITHIN" 2..=2 Spatial;
    StIntersects "ST_INTERSECTS" 2..=2 Spatial;
    StDisjoint "ST_DISJOINT" 2..=2 Spatial;
    StEquals "ST_EQUALS" 2..=2 Spatial;
    StTouches "ST_TOUCHES" 2..=2 Spatial;
    StCrosses "ST_CROSSES" 2..=2 Spatial;
    StOverlaps "ST_OVERLAPS" 2..=2 Spatial;
    MbrContains "MBRCONTAINS" 2..=2 Spatial;
    MbrWithin "MBRWITHIN" 2..=2 Spatial;
    MbrCovers "MBRCOVERS" 2..=2 Spatial;
    MbrCoveredBy "MBRCOVEREDBY" 2..=2 Spatial;
    MbrIntersects "MBRINTERSECTS" 2..=2 Spatial;
    MbrDisjoint "MBRDISJOINT" 2..=2 Spatial;
    MbrEquals "MBREQUALS" 2..=2 Spatial;
    MbrTouches "MBRTOUCHES" 2..=2 Spatial;
    MbrOverlaps "MBROVERLAPS" 2..=2 Spatial;
    // Digests and encodings.
    AesDecrypt "AES_DECRYPT" 2..=3 Statement;
    AesEncrypt "AES_ENCRYPT" 2..=3 Statement;
    ValidatePasswordStrength "VALIDATE_PASSWORD_STRENGTH" 1..=1 Pure;
    Md5 "MD5" 1..=1 Pure;
    Sha1 "SHA1" 1..=1 Pure;
    Sha2 "SHA2" 2..=2 Pure;
    Compress "COMPRESS" 1..=1 Pure;
    Uncompress "UNCOMPRESS" 1..=1 Pure;
    UncompressedLength "UNCOMPRESSED_LENGTH" 1..=1 Pure;
    StatementDigest "STATEMENT_DIGEST" 1..=1 Statement;
    StatementDigestText "STATEMENT_DIGEST_TEXT" 1..=1 Statement;
    InetAton "INET_ATON" 1..=1 Pure;
    InetNtoa "INET_NTOA" 1..=1 Pure;
    Inet6Aton "INET6_ATON" 1..=1 Pure;
    Inet6Ntoa "INET6_NTOA" 1..=1 Pure;
    IsIpv4 "IS_IPV4" 1..=1 Pure;
    IsIpv6 "IS_IPV6" 1..=1 Pure;
    IsIpv4Compat "IS_IPV4_COMPAT" 1..=1 Pure;
    IsIpv4Mapped "IS_IPV4_MAPPED" 1..=1 Pure;
    IsUuid "IS_UUID" 1..=1 Pure;
    BinToUuid "BIN_TO_UUID" 1..=2 Pure;
    UuidToBin "UUID_TO_BIN" 1..=2 Pure;
    Uuid "UUID" 0..=0 Volatile;
    UuidShort "UUID_SHORT" 0..=0 Volatile;
    RandomBytes "RANDOM_BYTES" 1..=1 Volatile;
    // The session and the server.
    ConnectionId "CONNECTION_ID" 0..=0 Statement;
    PsCurrentThreadId "PS_CURRENT_THREAD_ID" 0..=0 Statement;
    PsThreadId "PS_THREAD_ID" 1..=1 Statement;
    CurrentRole "CURRENT_ROLE" 0..=0 Statement;
    CurrentUser "CURRENT_USER" 0..=0 Statement;
    Database "DATABASE" 0..=0 Statement;
    FoundRows "FOUND_ROWS" 0..=0 Statement;
    LastInsertId "LAST_INSERT_ID" 0..=1 Volatile;
    RowCount "ROW_COUNT" 0..=0 Statement;
    User "USER" 0..=0 Statement;
    Version "VERSION" 0..=0 Statement;
    Benchmark "BENCHMARK" 2..=2 Volatile;
    Sleep "SLEEP" 1..=1 Volatile;
    GetLock "GET_LOCK" 2..=2 Volatile;
    IsFreeLock "IS_FREE_LOCK" 1..=1 Volatile;
    IsUsedLock "IS_USED_LOCK" 1..=1 Volatile;
    ReleaseLock "RELEASE_LOCK" 1..=1 Volatile;
    ReleaseAllLocks "RELEASE_ALL_LOCKS" 0..=0 Volatile;
    // Replication.
    GtidSubset "GTID_SUBSET" 2..=2 Pure;
    GtidSubtract "GTID_SUBTRACT" 2..=2 Pure;
    WaitForExecutedGtidSet "WAIT_FOR_EXECUTED_GTID_SET" 1..=2 Volatile;
    MasterPosWait "MASTER_POS_WAIT" 2..=4 Volatile;
    WaitUntilSqlThreadAfterGtids "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS" 1..=3 Volatile;
    NameConst "NAME_CONST" 2..=2 Pure;
    FormatBytes "FORMAT_BYTES" 1..=1 Pure;
    FormatPicoTime "FORMAT_PICO_TIME" 1..=1 Pure;
}
