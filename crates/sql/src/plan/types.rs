//! Types of expressions.

use highkey_types::{Collation, ColumnType, TypeKind};

/// Where an expression's collation comes from: the lower wins when two meet (COERCIBILITY() prints it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coercibility {
    /// A COLLATE clause.
    Explicit = 0,
    /// The concatenation of two strings with different collations.
    NoCollation = 1,
    /// A column.
    Implicit = 2,
    /// USER(), VERSION() and the like.
    SystemConstant = 3,
    /// A literal.
    Coercible = 4,
    /// A number or a temporal value.
    Numeric = 5,
    /// NULL.
    Ignorable = 6,
}

/// The type of an expression: a column type, whether it can be NULL, and the strength of its collation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExprType {
    /// What a column holding this expression would be.
    pub ty: ColumnType,
    /// It may be NULL.
    pub nullable: bool,
    /// Strength of `ty.collation`.
    pub coercibility: Coercibility,
    /// The 1 or 0 of a condition: inside JSON it is true or false.
    pub truth: bool,
}

impl ExprType {
    /// A nullable type; strings are coercible as literals are, the rest numeric.
    pub fn new(ty: ColumnType) -> ExprType {
        let coercibility = if ty.is_text() || ty.is_binary() { Coercibility::Coercible } else { Coercibility::Numeric };
        ExprType { ty, nullable: true, coercibility, truth: false }
    }

    /// A column's type.
    pub fn column(ty: ColumnType, nullable: bool) -> ExprType {
        let coercibility = if ty.is_string() { Coercibility::Implicit } else { Coercibility::Numeric };
        ExprType { ty, nullable, coercibility, truth: false }
    }

    /// The type of NULL, and of a parameter whose value is not known yet.
    pub fn null() -> ExprType {
        ExprType { ty: ColumnType::new(TypeKind::Null), nullable: true, coercibility: Coercibility::Ignorable, truth: false }
    }

    /// A MySQL boolean: an integer of one digit, announced as BIGINT.
    pub fn boolean(nullable: bool) -> ExprType {
        let mut ty = ColumnType::bigint();
        ty.width = 1;
        ExprType { ty, nullable, coercibility: Coercibility::Numeric, truth: true }
    }

    /// BIGINT.
    pub fn bigint(nullable: bool) -> ExprType {
        ExprType { ty: ColumnType::bigint(), nullable, coercibility: Coercibility::Numeric, truth: false }
    }

    /// BIGINT UNSIGNED.
    pub fn ubigint(nullable: bool) -> ExprType {
        ExprType { ty: ColumnType::ubigint(), nullable, coercibility: Coercibility::Numeric, truth: false }
    }

    /// A row's clustered key (`bind::ROW_KEY`).
    pub fn row_key(nullable: bool) -> ExprType {
        ExprType::column(ColumnType::new(TypeKind::VarBinary(3072)), nullable)
    }

    /// DOUBLE.
    pub fn double(nullable: bool) -> ExprType {
        ExprType { ty: ColumnType::double(), nullable, coercibility: Coercibility::Numeric, truth: false }
    }

    /// DECIMAL, clamped to MySQL's limits of 65 digits and 30 after the point.
    pub fn decimal(precision: u32, scale: u32, nullable: bool) -> ExprType {
        let scale = scale.min(30);
        let precision = precision.clamp(1, 65).max(scale);
        ExprType { ty: ColumnType::decimal(precision as u8, scale as u8), nullable, coercibility: Coercibility::Numeric, truth: false }
    }

    /// A string of at most `length` characters, as a literal's type would be.
    pub fn text(length: u32, collation: &'static Collation, nullable: bool) -> ExprType {
        ExprType { ty: string_type(length, collation), nullable, coercibility: Coercibility::Coercible, truth: false }
    }

    /// This type with another coercibility.
    pub fn with_coercibility(mut self, coercibility: Coercibility) -> ExprType {
        self.coercibility = coercibility;
        self
    }

    /// This type, nullable or not.
    pub fn with_nullable(mut self, nullable: bool) -> ExprType {
        self.nullable = nullable;
        self
    }

    /// A bare NULL or an untyped parameter.
    pub fn is_null_type(&self) -> bool {
        self.ty.kind == TypeKind::Null
    }

    /// The collation of text comparisons with this type.
    pub fn collation(&self) -> &'static Collation {
        self.ty.collation
    }

    /// Characters (bytes if binary) of a string type, or of the text form of another type.
    pub fn char_length(&self) -> u32 {
        match &self.ty.kind {
            TypeKind::Char(n) | TypeKind::VarChar(n) | TypeKind::Binary(n) | TypeKind::VarBinary(n) => *n,
            TypeKind::Null => 0,
            TypeKind::Enum(members) => members.iter().map(|m| m.chars().count() as u32).max().unwrap_or(0),
            TypeKind::Set(members) => members.iter().map(|m| m.chars().count() as u32 + 1).sum::<u32>().saturating_sub(1),
            TypeKind::TinyText | TypeKind::TinyBlob => 255,
            TypeKind::Text | TypeKind::Blob => 65_535,
            TypeKind::MediumText | TypeKind::MediumBlob => 16_777_215,
            TypeKind::LongText | TypeKind::LongBlob | TypeKind::Json | TypeKind::Geometry(_) => u32::MAX,
            _ if self.ty.is_integer() => self.integer_length(),
            _ => self.ty.display_length(),
        }
    }

    /// Characters of an integer. The display width of `tinyint(1)` and of ZEROFILL does not limit a column; that of an expression is what it may have.
    pub fn integer_length(&self) -> u32 {
        if self.ty.kind != TypeKind::TinyInt && !self.ty.zerofill {
            return self.ty.display_length();
        }
        let plain = ColumnType { width: 0, ..self.ty.clone() };
        plain.display_length().max(u32::from(self.ty.width))
    }

    /// Digits before the point and after it, as MySQL counts them for DECIMAL arithmetic.
    pub fn decimal_digits(&self) -> (u32, u32) {
        match self.ty.kind {
            TypeKind::Decimal { precision, scale } => (u32::from(precision - scale.min(precision)), u32::from(scale)),
            TypeKind::TinyInt => (3, 0),
            TypeKind::SmallInt => (5, 0),
            TypeKind::MediumInt => (8, 0),
            TypeKind::Int if self.ty.width > 0 && !self.ty.zerofill => (u32::from(self.ty.width), 0),
            TypeKind::Int => (10, 0),
            TypeKind::BigInt if self.ty.width > 0 && !self.ty.zerofill => (u32::from(self.ty.width), 0),
            TypeKind::BigInt => (if self.ty.unsigned { 20 } else { 19 }, 0),
            TypeKind::Bit(bits) => (u32::from(bits), 0),
            TypeKind::Year => (4, 0),
            TypeKind::Date => (8, 0),
            TypeKind::DateTime(fsp) | TypeKind::Timestamp(fsp) => (14, u32::from(fsp)),
            TypeKind::Time(fsp) => (7, u32::from(fsp)),
            TypeKind::Null => (1, 0),
            _ => (65 - 30, 30),
        }
    }
}

/// The string type of an expression of at most `length` characters: VARCHAR while it fits a row, a TEXT or BLOB beyond.
pub fn string_type(length: u32, collation: &'static Collation) -> ColumnType {
    let binary = collation.charset == highkey_types::Charset::Binary;
    let bytes = u64::from(length) * collation.charset.max_bytes() as u64;
    let kind = match (binary, bytes) {
        (false, 0..=65_532) => TypeKind::VarChar(length),
        (false, 65_533..=16_777_215) => TypeKind::MediumText,
        (false, _) => TypeKind::LongText,
        (true, 0..=65_532) => TypeKind::VarBinary(length),
        (true, 65_533..=16_777_215) => TypeKind::MediumBlob,
        (true, _) => TypeKind::LongBlob,
    };
    ColumnType::with_collation(kind, collation)
}
